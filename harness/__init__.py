"""What tests and benchmarks share: small studies, the app as a server, the people who label in it
(in a browser or over the WebSocket), the providers' protocols on loopback. Not part of the wheel.
"""
