"""Logins: by an address that names the rater, name and password, or an organisation's provider.

For annotators and leads alike; `annotate_app.lead_entry` decides what a lead may open.
"""
