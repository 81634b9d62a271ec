"""`python -m evenhand` is `evenhand`."""

from evenhand.main import main

raise SystemExit(main())
