"""docs/architecture.md is true: its tables of actors, arrows, owners and circles are those of the code.

Everything is read from the syntax trees. An actor can tell those whose addresses it was given: by its constructor, by
`connect`, in a value or a port that it holds, or in mail. What it tells is the mail that its modules construct.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

Pair = tuple[str, str]
FLOORS = ("protocol", "actors", "runtime")


class House:
    """The modules that `runtime.main` reaches, and what they say about actors and mail."""

    def __init__(self, root: Path) -> None:
        files = [file for package in FLOORS for file in (root / package).rglob("*.py")]
        everything = {_module(file.relative_to(root)): ast.parse(file.read_text(encoding="utf-8")) for file in files}
        self.all = everything
        self.trees = {name: everything[name] for name in _reached("runtime.main", everything)}
        mail = everything["actors.mail"]
        self.mail = {node.name: node for node in mail.body if isinstance(node, ast.ClassDef)}
        unions = {target: value for target, value in _assigned(mail) if target.endswith("Mail")}
        self.actors: dict[str, str] = {}
        self.takes: dict[str, set[str]] = {}
        self.stands_for: dict[str, str] = {}
        for module, node in self.classes():
            for base in node.bases:
                if isinstance(base, ast.Subscript) and ast.unparse(base.value) == "Actor":
                    self.actors[node.name] = module
                    taken = _names(unions[ast.unparse(base.slice)])
                    self.takes[node.name] = taken - set(unions)
                    for union in taken & set(unions):
                        self.stands_for[node.name] = union.removesuffix("Mail")
        self.union_of = {f"{name}Mail": name for name in self.actors}

    def classes(self) -> Iterator[tuple[str, ast.ClassDef]]:
        for module, tree in self.trees.items():
            yield from ((module, node) for node in tree.body if isinstance(node, ast.ClassDef))

    def class_of(self, actor: str) -> ast.ClassDef:
        return next(node for module, node in self.classes() if (node.name, module) == (actor, self.actors[actor]))

    def receiver(self, mail: str) -> str:
        (taker,) = self.receivers(mail)
        return taker

    def receivers(self, mail: str) -> set[str]:
        """Whose an address for this union, or for this one mail, is. Only `Tick` has several takers."""
        if mail in self.union_of:
            return {self.union_of[mail]}
        return {actor for actor, takes in self.takes.items() if mail in takes}

    # -- who holds whose address

    def holds(self, actor: str) -> set[str]:
        module = self.actors[actor]
        methods = [node for node in self.class_of(actor).body if isinstance(node, ast.FunctionDef)]
        given = [arg.annotation for node in methods if node.name in ("__init__", "connect") for arg in node.args.args]
        found = [mail for each in given if each is not None for mail in self._addresses(each, module, set())]
        for taken in (self.takes[actor] | self.takes.get(self.stands_for.get(actor, ""), set())) & set(self.mail):
            found += self._addresses(self.mail[taken], "actors.mail", set())
        return {taker for mail in found if mail != "Down" for taker in self.receivers(mail)}

    def _addresses(self, node: ast.AST, module: str, seen: set[str]) -> Iterator[str]:
        """What `Address[...]` and `Child[...]` occur in a type. A function's parameters are given away, not held."""
        if isinstance(node, ast.Subscript) and ast.unparse(node.value) in ("Address", "Child"):
            yield ast.unparse(node.slice)
        elif isinstance(node, ast.Subscript) and ast.unparse(node.value) == "Callable":
            assert isinstance(node.slice, ast.Tuple)
            yield from self._addresses(node.slice.elts[1], module, seen)
        elif isinstance(node, ast.ClassDef):
            for field in node.body:
                if isinstance(field, ast.AnnAssign):
                    yield from self._addresses(field.annotation, module, seen)
        elif isinstance(node, ast.Name) and node.id not in seen:
            home, meant = self._meaning(node.id, module)
            if meant is not None:
                yield from self._addresses(meant, home, seen | {node.id})
        else:
            for part in ast.iter_child_nodes(node):
                yield from self._addresses(part, module, seen)

    def _meaning(self, name: str, module: str) -> tuple[str, ast.AST | None]:
        """The class or alias that a name stands for, if it is one of the actors' package."""
        tree = self.trees.get(module)
        if tree is None or not module.startswith("actors."):
            return module, None
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and node.name == name:
                return module, node
        for target, value in _assigned(tree):
            if target == name:
                return module, value
        for part in ast.walk(tree):
            if isinstance(part, ast.ImportFrom) and name in {alias.name for alias in part.names}:
                return self._meaning(name, part.module or "")
        return module, None

    # -- who tells what

    def sender(self, module: str, place: str, pumps: dict[str, str]) -> str:
        path = module.replace(".", "/") + ".py"
        named = pumps.get(f"{path}:{place}") or pumps.get(path)
        if named:
            return named
        folders = [module.rsplit(".", depth)[0] for depth in range(1, module.count("."))]
        homes = [module, *(f"{folder}.{name}" for folder in folders for name in ("actor", "desk"))]
        owners = {its_module: actor for actor, its_module in self.actors.items()}
        owner = next((owners[home] for home in homes if home in owners), None)
        assert owner, f"{path} tells mail, but is neither an actor, nor beside one, nor in the table of pumps"
        return owner

    def told(self, pumps: dict[str, str]) -> Iterator[tuple[str, str, ast.expr | None]]:
        """Sender, mail and, where it stands there, the address of every mail that is constructed."""
        for module, tree in self.trees.items():
            if module in ("actors.mail", "actors.base", "runtime.threads"):
                continue  # the definitions, and the host, which tells `Down` to owners
            known = _imported(tree, ("actors.mail", "actors.base")) & set().union(*self.takes.values())
            for top in tree.body:
                targets = _targets(top)
                for node in ast.walk(top):
                    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in known:
                        sender = self.sender(module, getattr(top, "name", ""), pumps)
                        yield sender, node.func.id, targets.get(node)

    def arrows(self, pumps: dict[str, str]) -> dict[Pair, set[str]]:
        arrows: dict[Pair, set[str]] = {(actor, held): set() for actor in self.actors for held in self.holds(actor)}
        for sender, mail, target in self.told(pumps):
            takers = {actor for actor, takes in self.takes.items() if mail in takes}
            if mail == "Down":  # its address tells whom
                takers &= {taker for taker in takers if ast.unparse(target or ast.Name("")) == f"self._{taker.lower()}"}
            assert len(takers) == 1 or mail == "Tick", f"{mail} has several takers"
            for taker in takers - {sender}:  # to itself it hands a value
                if sender in self.actors:
                    assert (sender, taker) in arrows, f"{sender} tells {mail}, but holds no address of {taker}"
                arrows.setdefault((sender, taker), set()).add(mail)
        return arrows

    def owners(self) -> set[Pair]:
        """Each actor that the wiring starts, and who is told of its death."""
        wiring = self.trees["runtime.wiring"]
        (house,) = (node for node in wiring.body if isinstance(node, ast.ClassDef) and node.name == "House")
        found = set()
        for function in (node for node in house.body if isinstance(node, ast.FunctionDef)):
            types = {arg.arg: ast.unparse(arg.annotation) for arg in function.args.args if arg.annotation is not None}
            for node in ast.walk(function):
                if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
                    types[ast.unparse(node.targets[0])] = ast.unparse(node.value.func)
            for node in ast.walk(function):
                if isinstance(node, ast.Call) and ast.unparse(node.func) in ("host.start", "self._host.start"):
                    actor, owner = node.args[0], ast.unparse(node.args[2])
                    name = ast.unparse(actor.func) if isinstance(actor, ast.Call) else types[ast.unparse(actor)]
                    found.add((name, self.receiver(types[owner].partition("[")[2].rstrip("]"))))
        return found


def _module(path: Path) -> str:
    return ".".join(path.with_suffix("").parts).removesuffix(".__init__")


def _assigned(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            yield node.targets[0].id, node.value


def _imported(tree: ast.AST, sources: tuple[str, ...]) -> set[str]:
    froms = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module in sources]
    return {alias.asname or alias.name for node in froms for alias in node.names}


def _names(node: ast.AST) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


def _targets(top: ast.AST) -> dict[ast.expr, ast.expr]:
    """The address of each mail that is constructed inside a `tell`."""
    calls = [node for node in ast.walk(top) if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)]
    return {call.args[0]: call.func.value for call in calls if call.func.attr == "tell" and call.args}  # type: ignore[attr-defined]


# ---- imports -----------------------------------------------------------------------------------------------------


def imports(tree: ast.AST, modules: set[str], *, at_load: bool) -> set[str]:
    """The modules of ours that a module names; `at_load` leaves out what is imported in functions or for types only."""
    found = set()
    waiting = list(ast.iter_child_nodes(tree))
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.ImportFrom) and node.module:
            full = [f"{node.module}.{alias.name}" for alias in node.names]
            found |= {name if name in modules else node.module for name in full}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif not at_load or not (isinstance(node, ast.FunctionDef) or _for_types(node)):
            waiting += ast.iter_child_nodes(node)
    return found & modules


def _for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def _reached(start: str, trees: dict[str, ast.Module]) -> list[str]:
    graph = {name: imports(tree, set(trees), at_load=False) for name, tree in trees.items()}
    return sorted({start} | _below(start, graph))


def _below(start: str, graph: dict[str, set[str]]) -> set[str]:
    found: set[str] = set()
    waiting = [start]
    while waiting:
        new = graph[waiting.pop()] - found
        found |= new
        waiting += new
    return found


def circles(graph: dict[str, set[str]]) -> set[frozenset[str]]:
    """The groups of modules that reach each other."""
    below = {name: _below(name, graph) for name in graph}
    return {frozenset(other for other in below[name] if name in below[other]) for name in graph if name in below[name]}


# ---- the tables of the document ----------------------------------------------------------------------------------


def table(text: str, heading: str) -> list[list[str]]:
    """The rows of the first table below a heading, without back-ticks."""
    section = re.split(r"^#+ ", text.partition(f"# {heading}\n")[2], flags=re.MULTILINE)[0]
    lines = [line.replace("`", "").strip().strip("|") for line in section.splitlines() if line.startswith("|")]
    assert len(lines) > 2, f'no table below "{heading}"'
    return [[cell.strip() for cell in line.split("|")] for line in lines[2:]]


def words(cell: str) -> set[str]:
    return {word for word in re.split(r"[,\s]+", cell) if word}


@pytest.fixture(scope="module")
def house(root: Path) -> House:
    return House(root)


@pytest.fixture(scope="module")
def text(root: Path) -> str:
    return (root / "docs" / "architecture.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def pumps(text: str) -> dict[str, str]:
    return {row[1]: row[0] for row in table(text, "Pumps and ports")}


def test_the_table_of_actors_names_every_actor_and_its_module(house: House, text: str) -> None:
    paths = {actor: module.replace(".", "/") + ".py" for actor, module in house.actors.items()}
    assert {row[0]: row[1] for row in table(text, "Who owns what")} == paths


def test_the_table_of_arrows_is_that_of_the_code(house: House, text: str, pumps: dict[str, str]) -> None:
    documented: dict[Pair, set[str]] = defaultdict(set)
    for sender, receiver, mail in table(text, "Who may tell whom"):
        documented[sender, receiver] |= words(mail)
    assert dict(documented) == house.arrows(pumps)


def test_the_table_of_stand_ins_is_that_of_the_mail(house: House, text: str) -> None:
    assert {row[0]: row[1] for row in table(text, "Without a client")} == house.stands_for


def test_the_table_of_owners_is_that_of_the_wiring(house: House, text: str) -> None:
    assert {(row[0], row[1]) for row in table(text, "Supervision")} == house.owners()


def test_every_mail_that_an_actor_takes_is_told_by_somebody(house: House, text: str, pumps: dict[str, str]) -> None:
    told = {(taker, mail) for (_, taker), mails in house.arrows(pumps).items() for mail in mails}
    told |= {(owner, "Down") for _, owner in house.owners()}
    later = {(taker, mail) for mails, taker, _ in table(text, "Mail without a sender") for mail in words(mails)}
    assert not told & later, "somebody tells it by now"
    assert {(actor, mail) for actor, takes in house.takes.items() for mail in takes} == told | later


def test_every_actor_dispatches_on_each_kind_of_its_mail(house: House) -> None:
    """mypy holds this for a `match` that ends in `assert_never`; a table of types it does not see through."""
    for actor, takes in house.takes.items():
        handled: set[str] = set()
        for node in ast.walk(house.class_of(actor)):
            if isinstance(node, ast.MatchClass):
                handled |= _names(node.cls)
            elif isinstance(node, ast.Call) and ast.unparse(node.func) == "isinstance":
                handled |= _names(node.args[1])
            elif isinstance(node, ast.Dict):
                handled |= {key.id for key in node.keys if isinstance(key, ast.Name)}
        assert takes <= handled or len(takes) == 1, f"{actor} does not dispatch {takes - handled}"


def test_actors_are_made_by_the_wiring_alone(house: House) -> None:
    made = {
        (node.func.id, module)
        for module, tree in house.trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in house.actors
        # other things have these names too: the actor is what comes from the actor's module
        if node.func.id in _imported(tree, (house.actors[node.func.id],))
    }
    assert made == {(actor, "runtime.main" if actor == "Root" else "runtime.wiring") for actor in house.actors}


def test_nobody_asks(house: House) -> None:
    calls = [node for tree in house.trees.values() for node in ast.walk(tree) if isinstance(node, ast.Call)]
    methods = {node.func.attr for node in calls if isinstance(node.func, ast.Attribute)}
    assert "tell" in methods
    assert methods & {"ask", "proxy"} == set()


def test_no_module_imports_upward(house: House) -> None:
    names = set(house.all)
    upward = [
        (name, other)
        for name, tree in house.all.items()
        for other in imports(tree, names, at_load=False)
        if FLOORS.index(other.partition(".")[0]) > FLOORS.index(name.partition(".")[0])
    ]
    assert upward == []


def test_no_circle_is_imported_when_the_modules_load(house: House) -> None:
    names = set(house.all)
    assert circles({name: imports(tree, names, at_load=True) for name, tree in house.all.items()}) == set()


def test_the_circles_of_names_are_those_that_the_document_gives_a_reason_for(house: House, text: str) -> None:
    names = set(house.all)
    found = circles({name: imports(tree, names, at_load=False) for name, tree in house.all.items()})
    assert found == {frozenset(words(row[0])) for row in table(text, "Circles of names")}
