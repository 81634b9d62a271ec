"""`python -m evenhand` is `evenhand`."""

from evenhand.cli.main import main

raise SystemExit(main())
