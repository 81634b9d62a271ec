"""What ships with evenhand: the demo's pairs and phrases. A package only so that they are found."""
