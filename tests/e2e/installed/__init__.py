"""The chart, installed once by real helm, as people and other programs meet it."""
