"""Where a Rust file can be changed, and the file with every change behind a switch.

`Source(path, text)` finds the sites with tree-sitter; `Source.render(active)` writes the file anew so that each mutant of
`active` waits for `crate::mutant_switch::on(ID)`. Operands are evaluated once and stand in the text once, whatever the
number of mutants, so that sites may lie within each other.

Genres. As in cargo-mutants 25: `value` (a function returns a constant), `binary`, `assign` (`+=`), `unary`, `guard`, `arm`.
Beyond it, because tensors are computed by methods: `method` (`min` for `max`, `ln` or `detach` left out, a question such as
`is_empty` negated), and `statement` (a call or an assignment left out).

Not changed: tests, constants and constant functions (no switch can be read there), what macros are given, patterns.
"""

import re
from dataclasses import dataclass, field

import tree_sitter
import tree_sitter_rust

PARSER = tree_sitter.Parser(tree_sitter.Language(tree_sitter_rust.language()))
ON = "crate::mutant_switch::on({})"

BINARY = {
    "==": ["!="], "!=": ["=="], "<": ["==", ">", "<="], ">": ["==", "<", ">="], "<=": [">"], ">=": ["<"],
    "+": ["-", "*"], "-": ["+", "/"], "*": ["+", "/"], "/": ["%", "*"], "%": ["/", "+"],
    "<<": [">>"], ">>": ["<<"], "&": ["|", "^"], "|": ["&", "^"], "^": ["|", "&"], "&&": ["||"], "||": ["&&"],
}
COMPARISONS = {"==", "!=", "<", ">", "<=", ">="}
ASSIGN = {f"{op}=": [f"{other}=" for other in BINARY[op]] for op in "+ - * / % & | ^ << >>".split()}

# Methods of one argument that take another's place, and methods without arguments that are left out.
SWAPPED = {"min": "max", "add": "sub", "mul": "div", "add_scalar": "sub_scalar", "mul_scalar": "div_scalar",
           "sum_dim": "mean_dim", "greater": "lower", "greater_equal": "lower_equal"}
SWAPPED |= {b: a for a, b in SWAPPED.items()}
SWAPPED_ALONE = {"floor": "ceil", "ceil": "floor", "mean": "sum"}
LEFT_OUT = {"abs", "sqrt", "ln", "exp", "ln_1p", "exp_m1", "neg", "detach", "recip"}
QUESTIONS = {"is_empty", "is_some", "is_none", "is_ok", "is_err", "is_nan", "is_finite", "is_infinite", "any", "all",
             "contains", "contains_key", "is_eq", "is_ne", "is_lt", "is_le", "is_gt", "is_ge", "starts_with", "ends_with",
             "is_some_and", "is_none_or"}

SKIPPED = {"const_item", "static_item", "macro_invocation", "macro_definition", "attribute_item", "match_pattern",
           "array_type", "const_block", "use_declaration", "line_comment", "block_comment", "struct_item", "enum_item"}


@dataclass
class Mutant:
    """One change: `key` names it for good, `number` in one build."""

    file: str
    line: int
    column: int
    function: str
    genre: str
    change: str
    site: int
    number: int = 0

    @property
    def key(self):
        return f"{self.file}:{self.line}:{self.column}: {self.change}"


@dataclass
class Site:
    node: object
    kind: str
    mutants: list = field(default_factory=list)
    replacements: list = field(default_factory=list)


def text(node):
    return node.text.decode()


def place(node):
    return node.type, node.start_byte, node.end_byte


def children_of(node, *kinds):
    return [child for child in node.children if child.type in kinds]


def values_of(kind):
    """Constants of a type, as source text; empty where none is known."""
    if kind is None or kind.type == "unit_type":
        return ["()"]
    name = text(kind)
    if name == "bool":
        return ["true", "false"]
    if name in ("f32", "f64"):
        return ["0.0", "1.0", "-1.0"]
    if re.fullmatch(r"[ui](8|16|32|64|128|size)", name):
        return ["0", "1"] + (["-1"] if name[0] == "i" else [])
    if name.split("::")[-1] == "Ordering":
        return [f"std::cmp::Ordering::{end}" for end in ("Less", "Equal", "Greater")]
    if name == "String":
        return ["String::new()", '"xyzzy".to_owned()']
    if kind.type == "reference_type":
        inner = kind.child_by_field_name("type")
        if text(inner) == "str":
            return ['""', '"xyzzy"']
        if inner.type == "array_type" and inner.child_by_field_name("length") is None and not text(kind).startswith("&mut"):
            return ["Vec::new().leak()"]
        return []
    if kind.type == "tuple_type":
        parts = [values_of(part) for part in kind.named_children]
        tuples = [[]]
        for part in parts:
            tuples = [first + [value] for first in tuples for value in part[:2]]
        return [f"({', '.join(values)})" for values in tuples[:8]]
    if kind.type == "array_type":
        length = kind.child_by_field_name("length")
        return [f"[{value}; {text(length)}]" for value in values_of(kind.child_by_field_name("element"))] if length else []
    if kind.type == "generic_type":
        outer = text(kind.child_by_field_name("type")).split("::")[-1]
        arguments = [child for child in kind.child_by_field_name("type_arguments").named_children if child.type != "lifetime"]
        inner = values_of(arguments[0]) if arguments else []
        if outer == "Option":
            return ["None"] + [f"Some({value})" for value in inner]
        if outer == "Result":
            return [f"Ok({value})" for value in inner]
        if outer == "Vec":
            return ["Vec::new()"] + [f"vec![{value}]" for value in inner]
        return ["Default::default()"]
    if kind.type in ("abstract_type", "never_type", "dynamic_type"):
        return []
    return ["Default::default()"]


class Source:
    """A file with its sites and mutants."""

    def __init__(self, name, content):
        self.name, self.content = name, content.encode()
        self.tensors = "burn::" in content
        self.sites, self.by_place = [], {}
        self.tree = PARSER.parse(self.content)
        self.find(self.tree.root_node, "")
        self.mutants = [mutant for site in self.sites for mutant in site.mutants]

    def add(self, node, kind, at, function, genre, changes):
        """`changes`: pairs of replacement and description."""
        site = Site(node, kind)
        for replacement, change in changes:
            row, column = at.start_point
            site.mutants.append(Mutant(self.name, row + 1, column + 1, function, genre, change, len(self.sites)))
            site.replacements.append(replacement)
        if site.mutants:
            self.by_place.setdefault(place(node), []).append(site)
            self.sites.append(site)

    def find(self, node, function):
        if node.type == "match_pattern" and node.child_by_field_name("condition") is not None:
            return self.find(node.child_by_field_name("condition"), function)
        if node.type in SKIPPED or self.is_test(node):
            return
        if node.type == "function_item":
            if any("const" in text(modifier).split() for modifier in children_of(node, "function_modifiers")):
                return
            function = text(node.child_by_field_name("name"))
            self.find_value(node, function)
        finder = getattr(self, f"find_{node.type}", None)
        if finder:
            finder(node, function)
        for child in node.children:
            is_length = node.type == "array_expression" and child == node.child_by_field_name("length")
            if not is_length:
                self.find(child, function)

    @staticmethod
    def is_test(node):
        attribute = node.prev_named_sibling
        while attribute is not None and attribute.type in ("attribute_item", "line_comment"):
            if re.search(r"\btest\b", text(attribute)) and attribute.type == "attribute_item":
                return True
            attribute = attribute.prev_named_sibling
        return False

    def find_value(self, node, function):
        body, kind = node.child_by_field_name("body"), node.child_by_field_name("return_type")
        inner = text(body)[1:-1].strip()
        if function in ("main", "default") or not inner:
            return
        changes = [(value, f"replace {function} with {value}") for value in values_of(kind) if value != inner]
        self.add(body, "value", body, function, "value", changes)

    def find_binary_expression(self, node, function):
        operator = node.child_by_field_name("operator")
        symbol = text(operator)
        kind = "logic" if symbol in ("&&", "||") else "comparison" if symbol in COMPARISONS else "binary"
        changes = [(other, f"replace {symbol} with {other} in {function}") for other in BINARY.get(symbol, [])]
        self.add(node, kind, operator, function, "binary", changes)

    def find_compound_assignment_expr(self, node, function):
        operator = node.child_by_field_name("operator")
        changes = [(other, f"replace {text(operator)} with {other} in {function}") for other in ASSIGN[text(operator)]]
        self.add(node, "assign", operator, function, "assign", changes)

    def find_unary_expression(self, node, function):
        symbol = text(node.children[0])
        if symbol in "!-":
            self.add(node, "unary", node, function, "unary", [("", f"delete {symbol} in {function}")])

    def find_match_expression(self, node, function):
        arms = children_of(node.child_by_field_name("body"), "match_arm")
        patterns = [arm.child_by_field_name("pattern") for arm in arms]
        for arm, pattern in zip(arms, patterns):
            condition = pattern.child_by_field_name("condition")
            bare = text(pattern.children[0])
            if condition is not None and condition.type not in ("let_condition", "let_chain"):
                changes = [(value, f"replace guard {text(condition)} with {value} in {function}") for value in ("true", "false")]
                self.add(pattern, "guard", condition, function, "guard", changes)
            elif condition is None and bare != "_" and any(text(other) == "_" for other in patterns):
                self.add(pattern, "arm", arm, function, "arm", [("", f"delete arm {text(pattern)} in {function}")])

    def find_call_expression(self, node, function):
        callee, arguments = node.child_by_field_name("function"), node.child_by_field_name("arguments").named_children
        if callee.type != "field_expression":
            if text(callee).split("::")[-1] == "reverse_gradient" and self.tensors:
                self.add(node, "first", node, function, "method", [("", f"delete reverse_gradient in {function}")])
            return
        name_node = callee.child_by_field_name("field")
        name, n = text(name_node), len([a for a in arguments if "comment" not in a.type])
        if name in SWAPPED and n == 1 and (self.tensors or name in ("min", "max")):
            change = (SWAPPED[name], f"replace {name} with {SWAPPED[name]} in {function}")
            self.add(node, "swap", name_node, function, "method", [change])
        elif name in SWAPPED_ALONE and n == 0:
            change = (SWAPPED_ALONE[name], f"replace {name} with {SWAPPED_ALONE[name]} in {function}")
            self.add(node, "swap", name_node, function, "method", [change])
        elif name in LEFT_OUT and n == 0:
            self.add(node, "left_out", name_node, function, "method", [("", f"delete {name} in {function}")])
        elif name in QUESTIONS and not (node.parent.type == "unary_expression" and text(node.parent)[0] == "!"):
            self.add(node, "question", name_node, function, "method", [("", f"negate {name} in {function}")])

    def find_expression_statement(self, node, function):
        inner = node.children[0]
        if text(node).endswith(";") and inner.type in ("call_expression", "try_expression", "assignment_expression"):
            shown = " ".join(text(inner).split())
            shown = shown if len(shown) < 70 else shown[:67] + ".."
            self.add(node, "statement", node, function, "statement", [("", f"delete {shown} in {function}")])

    # Writing

    def render(self, active):
        """The file with the mutants whose numbers are in `active` behind switches, between marks of where they stand."""
        self.active = active
        return self.content[: self.tree.root_node.start_byte].decode() + self.emit(self.tree.root_node)

    def emit(self, node):
        parts, position = [], node.start_byte
        for child in node.children:
            parts += [self.content[position : child.start_byte].decode(), self.emit(child)]
            position = child.end_byte
        plain = "".join(parts) + self.content[position : node.end_byte].decode()
        for site in self.by_place.get(place(node), []):
            chosen = [(m.number, r) for m, r in zip(site.mutants, site.replacements) if m.number in self.active]
            if chosen:
                mark, write = chosen[0][0], getattr(self, f"write_{site.kind}")
                plain = f"/*[{mark}*/{write(site.node, plain, chosen)}/*{mark}]*/"
        return plain

    @staticmethod
    def branches(chosen, write, usual):
        """`if on(1) { .. } else if on(2) { .. } else { usual }`, every branch between marks."""
        ifs = [f"if {ON.format(number)} {{ /*<{number}*/{write(other)}/*{number}>*/ }} else " for number, other in chosen]
        return "".join(ifs) + f"{{ {usual} }}"

    def operand(self, node, name):
        return self.emit(node.child_by_field_name(name))

    def write_value(self, node, plain, chosen):
        lines = [f"if {ON.format(n)} {{ /*<{n}*/return {value};/*{n}>*/ }}" for n, value in chosen]
        return "{ " + " ".join(lines) + plain[1:]

    def write_binary(self, node, plain, chosen):
        usual = text(node.child_by_field_name("operator"))
        body = self.branches(chosen, lambda other: f"__l {other} __r", f"__l {usual} __r")
        return f"(match ({self.operand(node, 'left')}, {self.operand(node, 'right')}) {{ (__l, __r) => {body} }})"

    def write_comparison(self, node, plain, chosen):
        usual = text(node.child_by_field_name("operator"))
        body = self.branches(chosen, lambda other: f"*__l {other} *__r", f"*__l {usual} *__r")
        return f"(match (&({self.operand(node, 'left')}), &({self.operand(node, 'right')})) {{ (__l, __r) => {body} }})"

    def write_logic(self, node, plain, chosen):
        sign = "==" if text(node.child_by_field_name("operator")) == "&&" else "!="
        left, right = self.operand(node, "left"), self.operand(node, "right")
        return f"({{ let __l: bool = {left}; if __l {sign} {ON.format(chosen[0][0])} {{ __l }} else {{ {right} }} }})"

    def write_assign(self, node, plain, chosen):
        left, usual = self.operand(node, "left"), text(node.child_by_field_name("operator"))
        body = self.branches(chosen, lambda other: f"{left} {other} __r;", f"{left} {usual} __r;")
        return f"(match ({self.operand(node, 'right')}) {{ __r => {body} }})"

    def write_unary(self, node, plain, chosen):
        inner = self.emit(node.children[-1])
        body = self.branches(chosen, lambda _: "__v", f"{text(node.children[0])}__v")
        return f"(match ({inner}) {{ __v => {body} }})"

    def write_guard(self, node, plain, chosen):
        bare, guard = text(node.children[0]), self.operand(node, "condition")
        switches = {value: ON.format(number) for number, value in chosen}
        true, false = switches.get("true", "false"), switches.get("false", "false")
        return f"{bare} if {true} || (!{false} && ({guard}))"

    def write_arm(self, node, plain, chosen):
        return f"{plain} if !{ON.format(chosen[0][0])}"

    def write_first(self, node, plain, chosen):
        first = self.emit(node.child_by_field_name("arguments").named_children[0])
        callee, rest = plain.split("(", 1)
        return f"(if {ON.format(chosen[0][0])} {{ {first} }} else {{ {callee}({rest} }})"

    def parts_of_call(self, node):
        callee = node.child_by_field_name("function")
        arguments = [child for child in node.child_by_field_name("arguments").named_children if "comment" not in child.type]
        return self.emit(callee.child_by_field_name("value")), text(callee.child_by_field_name("field")), arguments

    def write_swap(self, node, plain, chosen):
        receiver, name, arguments = self.parts_of_call(node)
        if arguments:
            body = self.branches(chosen, lambda other: f"__l.{other}(__r)", f"__l.{name}(__r)")
            return f"(match ({receiver}, {self.emit(arguments[0])}) {{ (__l, __r) => {body} }})"
        body = self.branches(chosen, lambda other: f"__v.{other}()", f"__v.{name}()")
        return f"(match ({receiver}) {{ __v => {body} }})"

    def write_left_out(self, node, plain, chosen):
        receiver, name, _ = self.parts_of_call(node)
        return f"(match ({receiver}) {{ __v => {self.branches(chosen, lambda _: '__v', f'__v.{name}()')} }})"

    def write_question(self, node, plain, chosen):
        return f"(({plain}) != {ON.format(chosen[0][0])})"

    def write_statement(self, node, plain, chosen):
        return f"if !{ON.format(chosen[0][0])} {{ {plain} }}"
