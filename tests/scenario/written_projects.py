"""Whole projects as a scripted model writes them: once with a fault and once without."""

from __future__ import annotations


def reply(*files: tuple[str, str, str]) -> str:
    """Return a reply with files, each given by its path, fence language and text."""
    return "\n".join(f"### {path}\n```{fence}\n{text.strip()}\n```\n" for path, fence, text in files)


TODO_TASK = """Build a CLI for TODO items that are kept in a JSON file.

    $ todo add milk
    added milk
    $ todo done 1
    $ todo list
    1. [x] milk
"""
TODO_MAIN = """
import argparse
import sys

from todo.store import load, save


def main():
    parser = argparse.ArgumentParser(prog="todo")
    commands = parser.add_subparsers(dest="command")
    commands.add_parser("add").add_argument("text")
    commands.add_parser("done").add_argument("number", type=int)
    commands.add_parser("list")
    args = parser.parse_args()
    items = load()
    if args.command == "add":
        save([*items, {"text": args.text, "done": False}])
        print(f"added {args.text}")
    elif args.command == "done":
        items[args.number - 1]["done"] = True
        save(items)
    elif args.command == "list":
        for number, item in enumerate(items, 1):
            print(f"{number}. [{'x' if item['done'] else ' '}] {item['text']}")
    else:
        parser.print_help()
    return 0


if __name__ == "__main__":
    sys.exit(main())
"""
TODO_STORE = """
import json
from pathlib import Path

FILE = Path("todo.json")


def load():
    return json.loads(FILE.read_text()) if FILE.exists() else []


def save(items):
    FILE.write_text(json.dumps(items))
"""
TODO = reply(("todo/__main__.py", "python", TODO_MAIN), ("todo/store.py", "python", TODO_STORE))
TODO_WRONG = TODO.replace("items[args.number - 1]", "items[args.number]")
GREET_TASK = 'A library called greet, with a function that greets: `greeting("Ada") == "Hello, Ada!"`.'
GREET = reply(("greet/__init__.py", "python", "def greeting(name):\n    return f'Hello, {name}!'"))
GREET_TESTS = """```python
from greet import greeting


def test_greeting():
    assert greeting("Ben") == "Hello, Ben!"
```
"""

BOOKS_TASK = """A REST API for books, kept in SQLite.

GET /books -> 200 []
POST /books {"title": "Emma"} -> 201 {"id": 1, "title": "Emma"}
GET /books/1 -> 200 {"id": 1, "title": "Emma"}
DELETE /books/1 -> 204
GET /books/1 -> 404
"""
BOOKS_STORE = """
import sqlite3

FILE = "books.db"


def _connect():
    connection = sqlite3.connect(FILE)
    connection.execute("CREATE TABLE IF NOT EXISTS books (id INTEGER PRIMARY KEY, title TEXT NOT NULL)")
    return connection


def list_books():
    with _connect() as db:
        return [{"id": number, "title": title} for number, title in db.execute("SELECT id, title FROM books")]


def find_book(number):
    return next((book for book in list_books() if book["id"] == number), None)


def add(title):
    with _connect() as db:
        return make_book(db.execute("INSERT INTO books (title) VALUES (?)", (title,)).lastrowid, title)


def make_book(number, title):
    return {"id": number, "title": title}


def remove(number):
    with _connect() as db:
        db.execute("DELETE FROM books WHERE id = ?", (number,))
"""
BOOKS_MAIN = """
import json
import os
from http.server import BaseHTTPRequestHandler, HTTPServer

from books import store


class Books(BaseHTTPRequestHandler):
    def answer(self, status, value=None):
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        if value is not None:
            self.wfile.write(json.dumps(value).encode())

    def number(self):
        last = self.path.rpartition("/")[2]
        return int(last) if last.isdigit() else None

    def do_GET(self):
        if self.path in ("/", "/books"):
            return self.answer(200, store.list_books())
        book = store.find_book(self.number())
        self.answer(200, book) if book else self.answer(404, {"error": "no such book"})

    def do_POST(self):
        given = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.answer(201, store.add(given["title"]))

    def do_DELETE(self):
        store.remove(self.number())
        self.answer(204)


def main():
    HTTPServer(("127.0.0.1", int(os.environ.get("PORT", "8000"))), Books).serve_forever()


if __name__ == "__main__":
    main()
"""
BOOKS = reply(("books/__main__.py", "python", BOOKS_MAIN), ("books/store.py", "python", BOOKS_STORE))
BOOKS_WRONG = BOOKS.replace("self.answer(201,", "self.answer(200,")
FLASK_MAIN = """
import os

from flask import Flask, jsonify, request

from books import store

app = Flask(__name__)


@app.get("/")
@app.get("/books")
def list_books():
    return jsonify(store.list_books())


@app.get("/books/<int:number>")
def find_book(number):
    book = store.find_book(number)
    return (jsonify(book), 200) if book else (jsonify(error="no such book"), 404)


@app.post("/books")
def add():
    return jsonify(store.add(request.get_json()["title"])), 201


@app.delete("/books/<int:number>")
def remove(number):
    store.remove(number)
    return "", 204


def main():
    app.run(host="127.0.0.1", port=int(os.environ.get("PORT", "8000")))


if __name__ == "__main__":
    main()
"""
FLASK = reply(("books/__main__.py", "python", FLASK_MAIN), ("books/store.py", "python", BOOKS_STORE))

CSV_TASK = "A data pipeline that reads a CSV file and writes count, mean and most of each numeric column."
CSV_MAIN = """
import csv
import json
import sys


def statistics(rows):
    found = {}
    for row in rows:
        for name, text in row.items():
            try:
                found.setdefault(name, []).append(float(text))
            except ValueError:
                continue
    return {
        name: {"count": len(values), "mean": sum(values) / len(values), "most": max(values)}
        for name, values in found.items()
        if values
    }


def main():
    source, target = sys.argv[1:3]
    try:
        with open(source, newline="") as file:
            rows = list(csv.DictReader(file))
    except OSError as fault:
        print(f"{source}: {fault.strerror}", file=sys.stderr)
        return 1
    with open(target, "w") as file:
        json.dump(statistics(rows), file, indent=2)
    return 0


if __name__ == "__main__":
    sys.exit(main())
"""
CSV = reply(("stats/__main__.py", "python", CSV_MAIN))
CSV_WRONG = CSV.replace("except ValueError:", "except KeyError:")

TIME_TASK = "Build a Node.js CLI tool that prints the current time"
TIME_MAIN = """
#!/usr/bin/env node
const { formatTime } = require("./clock");

if (process.argv.includes("--help")) {
  console.log("usage: clock");
} else {
  console.log(formatTime(new Date()));
}
"""
TIME_CLOCK = """
exports.formatTime = (date) => date.toISOString().slice(11, 19);
"""
TIME = reply(("src/index.js", "javascript", TIME_MAIN), ("src/clock.js", "javascript", TIME_CLOCK))
TIME_WRONG = TIME.replace("exports.formatTime", "exports.format")
TIME_TESTS = """```javascript
const test = require("node:test");
const assert = require("node:assert");
const { formatTime } = require("../src/clock");

test("hours, minutes and seconds", () => {
  assert.strictEqual(formatTime(new Date("2020-01-02T03:04:05Z")), "03:04:05");
});
```
"""

GO_TASK = """A Go CLI that greets.

    $ greet Ada
    Hello, Ada!
"""
GO_MAIN = """
package main

import (
	"fmt"
	"os"
)

func greeting(name string) string { return "Hello, " + name + "!" }

func main() {
	if len(os.Args) != 2 || os.Args[1] == "--help" {
		fmt.Println("usage: greet NAME")
		return
	}
	fmt.Println(greeting(os.Args[1]))
}
"""
GO = reply(("main.go", "go", GO_MAIN))
GO_WRONG = GO.replace('"Hello, " + name', 'name + "Hello, "')
GO_TESTS = """```go
package main

import "testing"

func TestGreeting(t *testing.T) {
	if greeting("A") != "Hello, A!" {
		t.Fatal(greeting("A"))
	}
}
```
"""
