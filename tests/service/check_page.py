"""Checks a page's HTML: elements are closed in order, and nothing is run or fetched from elsewhere. Prints its
texts."""
import sys
from html.parser import HTMLParser

VOID = {"meta", "br", "hr", "img", "input", "link"}
FETCHING = {"script", "link", "img", "iframe", "object", "embed", "video", "audio", "source", "base", "form"}


class Checker(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open = []
        self.wrong = []

    def handle_starttag(self, tag, attrs):
        if tag in FETCHING:
            self.wrong.append(f"<{tag}>")
        for name, value in attrs:
            if name.startswith("on"):
                self.wrong.append(f"{tag} has {name}")
            if name in ("src", "href") and not value.startswith("/"):
                self.wrong.append(f"{tag} points to {value}")
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append(f"</{tag}> closes nothing")

    def handle_data(self, data):
        if self.open and self.open[-1] == "style":
            if "url(" in data or "@import" in data:
                self.wrong.append("the style fetches")
        elif data.strip():
            print(data.strip())


checker = Checker()
checker.feed(open(sys.argv[1], encoding="utf-8").read())
checker.close()
for element in checker.open:
    checker.wrong.append(f"<{element}> is not closed")
for what in checker.wrong:
    print("wrong:", what)
sys.exit(1 if checker.wrong else 0)
