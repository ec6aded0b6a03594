"""Writes the page of the Python package to standard output: the names in ``shardtool.__all__``, with their docstrings.

python3 site/python_api.py python/src/shardtool

Only reads the source, so it needs neither torch nor numpy.
"""

import ast
import re
import sys
import textwrap
from pathlib import Path


class Module:
    """A module of the package: its text, and its definitions by name."""

    def __init__(self, path):
        text = path.read_text()
        self.lines = text.splitlines()
        self.tree = ast.parse(text)
        self.defined = {
            node.name: node for node in self.tree.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))
        }

    def comment_above(self, node):
        """The lines ``#: ...`` in front of a node, as one text."""
        first = min([node.lineno, *(decorator.lineno for decorator in getattr(node, "decorator_list", []))])
        above = []
        for line in reversed(self.lines[: first - 1]):
            if not line.strip().startswith("#:"):
                break
            above.insert(0, line.strip()[2:].strip())
        return "\n".join(above)


def exported(folder):
    """Names of ``__all__`` with the module and the node that define them."""
    init = Module(folder / "__init__.py")
    origins = {
        alias.name: node.module
        for node in init.tree.body
        if isinstance(node, ast.ImportFrom) and node.level == 1
        for alias in node.names
    }
    (names,) = [
        ast.literal_eval(node.value)
        for node in init.tree.body
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", None) == "__all__"
    ]
    modules = {}
    for name in names:
        module = init
        if name in origins:
            module = modules.setdefault(origins[name], defining(folder / origins[name], name))
        yield name, module, module.defined[name]


def defining(place, name):
    """The module that defines a name: the file of this name, or the module from which a package takes the name."""
    if not place.is_dir():
        return Module(place.with_suffix(".py"))
    package = Module(place / "__init__.py")
    for node in package.tree.body:
        if isinstance(node, ast.ImportFrom) and node.level == 1 and name in [alias.name for alias in node.names]:
            return defining(place / node.module, name)
    return package


def prose(text, names):
    """Converts the reStructuredText of these docstrings to Markdown."""
    blocks = []
    for block in re.split(r"\n{2,}", text.strip()):
        if block.startswith("    "):
            blocks.append(f"```python\n{textwrap.dedent(block)}\n```")
            continue
        block = re.sub(r"::$", ":", block)
        block = re.sub(r":(?:class|func):`(?:shardtool\.)?(\w+)`", lambda m: linked(m[1], names), block)
        block = re.sub(r":\w+:`([^`]+)`", r"`\1`", block)
        block = re.sub(r"``([^`]+)``", r"`\1`", block)
        # Text outside of code has no markup, so it is escaped.
        blocks.append("".join(part if part.startswith("`") else escaped(part) for part in re.split(r"(`[^`]+`)", block)))
    return "\n\n".join(blocks)


def escaped(text):
    return re.sub(r"(?<!\])\[(?=[^\]]*\](?!\())", r"\\[", text).replace("<", "&lt;").replace("{{", "&#123;&#123;")


def linked(name, names):
    return f"[`{name}`](#{name.lower()})" if name in names else f"`{name}`"


def signature(name, function):
    """The function as a user calls it, with one argument per line if it has many."""
    arguments = function.args
    for argument in [*arguments.posonlyargs, *arguments.args][:1]:
        if argument.arg in ("self", "cls"):
            arguments = ast.arguments(**{**vars(arguments), "args": arguments.args[1:]})
    plain = ast.unparse(arguments)
    given = plain if len(plain) < 80 else "\n    " + ",\n    ".join(one_by_one(arguments)) + ",\n"
    returns = "" if function.returns is None or function.name == "__init__" else f" -> {ast.unparse(function.returns)}"
    return f"```python\n{name}({given}){returns}\n```"


def one_by_one(arguments):
    """The arguments, each as it would be written alone."""
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(positional) - len(arguments.defaults)) + arguments.defaults
    for argument, default in zip(positional, defaults):
        yield written(argument, default)
    if arguments.vararg:
        yield "*" + written(arguments.vararg, None)
    elif arguments.kwonlyargs:
        yield "*"
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults):
        yield written(argument, default)
    if arguments.kwarg:
        yield "**" + written(arguments.kwarg, None)


def written(argument, default):
    text = ast.unparse(argument)
    return text if default is None else f"{text}{' = ' if argument.annotation else '='}{ast.unparse(default)}"


def function_entry(name, function, level, names):
    yield f"{'#' * level} {name}"
    yield signature(name, function)
    if text := ast.get_docstring(function):
        yield prose(text, names)


def is_property(function):
    decorators = [ast.unparse(decorator) for decorator in function.decorator_list]
    return "property" in decorators or "functools.cached_property" in decorators


def class_entry(name, node, module, names):
    yield f"## {name}"
    if bases := [base for base in map(ast.unparse, node.bases) if base not in ("TypedDict", "NamedTuple")]:
        yield "Is a " + " and ".join(linked(base, names) for base in bases) + "."
    functions = [part for part in node.body if isinstance(part, ast.FunctionDef)]
    makers = [function for function in functions if function.name == "__init__"]
    yield from (signature(name, maker) for maker in makers)
    if text := ast.get_docstring(node):
        yield prose(text, names)
    yield from attributes(node, functions, makers, module, names)
    for function in functions:
        if not function.name.startswith("_") and not is_property(function) and ast.get_docstring(function):
            yield from function_entry(function.name, function, 3, names)


def attributes(node, functions, makers, module, names):
    """A table of annotated names, attributes that ``__init__`` documents with ``#:``, and properties."""
    rows = []
    for part in node.body:
        if isinstance(part, ast.AnnAssign) and not part.target.id.startswith("_"):
            rows.append((part.target.id, ast.unparse(part.annotation), module.comment_above(part)))
    for part in (inner for maker in makers for inner in ast.walk(maker)):
        target = part.target if isinstance(part, ast.AnnAssign) else part.targets[0] if isinstance(part, ast.Assign) else None
        if isinstance(target, ast.Attribute) and not target.attr.startswith("_") and (text := module.comment_above(part)):
            rows.append((target.attr, ast.unparse(part.annotation) if isinstance(part, ast.AnnAssign) else "", text))
    for function in functions:
        if is_property(function) and not function.name.startswith("_"):
            kind = "" if function.returns is None else ast.unparse(function.returns)
            rows.append((function.name, kind, ast.get_docstring(function) or ""))
    if rows:
        cells = [(f"`{name}`", f"`{kind}`" if kind else "", prose(text, names)) for name, kind, text in rows]
        yield "\n".join(
            ["| name | type | |", "|---|---|---|"]
            + ["| " + " | ".join(re.sub(r"\s+", " ", cell).replace("|", "\\|") for cell in row) + " |" for row in cells]
        )


def main(folder):
    entries = list(exported(folder))
    names = {name for name, _, _ in entries}
    parts = ["# Python", "`import shardtool`. Generated from the docstrings of the package."]
    for name, module, node in entries:
        if isinstance(node, ast.ClassDef):
            parts += class_entry(name, node, module, names)
        else:
            parts += function_entry(name, node, 2, names)
    print("\n\n".join(parts))


main(Path(sys.argv[1]))
