"""Pairs of modules of which algebra says whether they are one function: right.py collects those that are, wrong.py those with a planted
mistake, and table.py compares all and prints docs/python.md's table. Needs torch; rows of transformers and timm need these.
"""
