"""The packages of `evenhand`: its folder, and the top-level folders as subpackages.

The links in `evenhand/` serve tools that read a checkout. Nothing is built through them: in a ZIP,
or a checkout without symbolic links, text files stand in their place.
"""

from setuptools import find_packages, setup

FOLDERS = ("analysis", "annotate_app", "data", "exchange", "graders", "rubrics", "study")

top_level = find_packages(include=[f"{name}*" for name in FOLDERS])
setup(
    packages=[
        *find_packages(include=["evenhand*"], exclude=[f"evenhand.{name}*" for name in FOLDERS]),
        *(f"evenhand.{package}" for package in top_level),
    ],
    package_dir={f"evenhand.{name}": name for name in FOLDERS},
)
