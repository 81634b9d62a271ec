"""Who is let in: by an address that says who, name and password, or an organisation's provider.

Of annotators and of leads alike; what a lead may open is `annotate_app.lead_entry`'s to say.
"""
