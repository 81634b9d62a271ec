"""Code shared by tests and benchmarks: small studies, the app as a server, annotators in a browser
or over the WebSocket, the providers' protocols on loopback. Not part of the wheel.
"""
