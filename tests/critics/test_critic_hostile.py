"""Programs that want out, blow up or deceive: each is refused, and its line is named."""

from __future__ import annotations

import pytest
from critic_texts import BODY_LINE, HEAD, critic_of, problems_of

IN_CHECK: dict[str, tuple[str, str]] = {
    # what it is: (statements of check whose first line is wrong, part of the reason)
    "power": ("x = 9.0 ** 9.0", "'**'"),
    "power_tower": ("x = 9 ** 9 ** 9 ** 9", "'**'"),
    "left_shift": ("x = 1 << 1000000", "'<<'"),
    "right_shift": ("x = 1 >> 2", "'>>'"),
    "bit_and": ("if now(w.ee_x) & 1:\n    return ok()", "'&'"),
    "bit_or": ("x = 1 | 2", "'|'"),
    "bit_xor": ("x = 1 ^ 2", "'^'"),
    "invert": ("x = ~1", "'~'"),
    "modulo": ("x = 7 % 2", "'%'"),
    "floor_division": ("x = 7 // 2", "'//'"),
    "matrix_product": ("x = w.ee_x @ w.ee_y", "'@'"),
    "text_repetition": ("x = 'a' * 1000000000", "text"),
    "text_sum": ("x = 'a' + 'b'", "text"),
    "text_format": ("x = '{0.__class__}'.format(w)", "only operators are called"),
    "percent_format": ("x = '%s' % w", "'%'"),
    "text_compared": ("x = 'a' < 'b'", "text"),
    "bytes": ("x = b'abc'", "text"),
    "f_string": ("x = f'{now(w.ee_speed)}'", "f-string"),
    "f_string_as_reason": ("return recover(f'{w.ee_speed}')", "text in quotes"),
    "computed_reason": ("return recover('a' + 'b')", "text in quotes"),
    "reason_by_keyword": ("return recover(reason='a')", 'return recover("why")'),
    "huge_integer": ("x = " + "9" * 400, "larger"),
    "huge_hexadecimal": ("x = 0x" + "f" * 9000, "larger"),
    "infinite_literal": ("x = 1e999", "larger"),
    "complex_literal": ("x = 1j", "complex"),
    "nothing": ("x = None", "None"),
    "ellipsis": ("x = ...", "Ellipsis"),
    "dunder_of_window": ("x = w.__class__", "no signal '__class__'"),
    "dunder_of_parameters": ("x = p.__dict__", "no parameter '__dict__'"),
    "attribute_walk": ("x = w.ee_x.__class__.__bases__", "only w.<signal>"),
    "attribute_of_call": ("x = now(w.ee_x).real", "only w.<signal>"),
    "attribute_of_operator": ("x = now.__globals__", "only w.<signal>"),
    "attribute_set": ("w.ee_x = 1.0", "one name is set at a time"),
    "index": ("x = w['ee_x']", "an index"),
    "index_set": ("w[0] = 1.0", "one name is set at a time"),
    "slice": ("x = w.ee_x[1:2]", "an index"),
    "walrus": ("if (x := now(w.ee_speed)) > 1.0:\n    return ok()", "':='"),
    "lambda": ("f = lambda: 1.0", "a lambda"),
    "list": ("x = [1.0]", "a list"),
    "tuple": ("x = 1.0, 2.0", "a tuple"),
    "unpacking": ("x, y = 1.0, 2.0", "one name is set at a time"),
    "two_targets": ("x = y = 1.0", "one name is set at a time"),
    "dictionary": ("x = {1: 2}", "a dictionary"),
    "set": ("x = {1}", "a set"),
    "list_comprehension": ("x = [y for y in w]", "a comprehension"),
    "set_comprehension": ("x = {y for y in w}", "a comprehension"),
    "dictionary_comprehension": ("x = {y: y for y in w}", "a comprehension"),
    "generator": ("x = mean(y for y in w)", "a generator"),
    "star_argument": ("x = mean(*w.ee_x)", "'*'"),
    "double_star_argument": ("x = mean(**w.ee_x)", "'**'"),
    "unknown_keyword": ("x = mean(w.ee_x, key=1.0)", "has no 'key'"),
    "argument_twice": ("x = mean(w.ee_speed, x=w.ee_speed)", "gets 'x' twice"),
    "getattr": ("x = getattr(w, 'ee_x')", "no operator 'getattr'"),
    "eval": ("x = eval('1')", "no operator 'eval'"),
    "open": ("x = open('/etc/passwd')", "no operator 'open'"),
    "import_call": ("x = __import__('os')", "no operator '__import__'"),
    "builtins": ("x = __builtins__", "never set"),
    "check_itself": ("return check(w, p)", "check returns"),
    "call_of_call": ("x = now(w.ee_x)()", "only operators are called"),
    "call_of_window": ("x = w.ee_x()", "only operators are called"),
    "call_of_window_method": ("x = w.last('ee_x', 1)", "only operators are called"),
    "verdict_as_value": ("x = recover('a')", "only returned"),
    "verdict_dropped": ("recover('a')", "return recover"),
    "for_loop": ("for x in w:\n    pass", "a loop"),
    "while_loop": ("while True:\n    pass", "a loop"),
    "import": ("import os", "import"),
    "import_from": ("from os import path", "import"),
    "global": ("global x", "global"),
    "nested_function": ("def f():\n    pass", "a function within"),
    "nested_class": ("class A:\n    pass", "a class"),
    "with": ("with w:\n    pass", "with"),
    "try": ("try:\n    pass\nfinally:\n    pass", "try"),
    "raise": ("raise w", "raise"),
    "assert": ("assert w.ee_x", "assert"),
    "delete": ("del w", "del"),
    "match": ("match w:\n    case _:\n        pass", "match"),
    "annotation": ("x: float = 1.0", "an annotation"),
    "yield": ("yield 1.0", "yield"),
    "yield_from": ("yield from w.ee_x", "yield from"),
    "yield_value": ("x = yield", "yield"),
    "is": ("if now(w.ee_x) is 1.0:\n    return ok()", "'is'"),
    "in": ("if 1.0 in w.ee_x:\n    return ok()", "'in'"),
    "shadowed_operator": ("now = 1.0", "a word of the language"),
    "shadowed_window": ("w = 1.0", "a word of the language"),
    "private_name": ("_x = 1.0", "begins with a letter"),
    "window_alone": ("x = w", "'w' stands alone"),
    "operator_alone": ("x = now", "is called"),
    "deep_parentheses": ("x = " + "(" * 150 + "1" + ")" * 150 + " + w", "stands alone"),
    "too_deep_sum": ("x = " + "1 + (" * 25 + "1" + ")" * 25, "deeper"),
    "too_deep_call": ("x = " + "abs(" * 25 + "1.0" + ")" * 25, "deeper"),
    "too_deep_not": ("x = " + "not " * 60 + "True", "deeper"),
    "expression_statement": ("now(w.ee_x)", "does nothing"),
}

WHOLE: dict[str, tuple[str | bytes, int, str]] = {
    # what it is: (program, the line that is named, part of the reason)
    "empty": ("", 1, "no docstring"),
    "only_spaces": ("   \n  ", 1, "no docstring"),
    "not_python": (HEAD + "    return (\n", 8, "no Python"),
    "no_docstring": (HEAD.split("\n", 1)[1] + "    return ok()\n", 1, "docstring"),
    "no_check": ('"""A."""\nWINDOW_S = 1.0\n', 2, "no function check(w, p)"),
    "no_window": ('"""A."""\ndef check(w, p):\n    return abort("a")\n', 1, "WINDOW_S"),
    "window_too_long": (HEAD.replace("2.0", "5.5") + '    return recover("a")\n', 3, "between 0"),
    "window_negative": (HEAD.replace("2.0", "-1.0") + '    return recover("a")\n', 3, "number"),
    "window_zero": (HEAD.replace("2.0", "0") + '    return recover("a")\n', 3, "greater than 0"),
    "window_true": (HEAD.replace("2.0", "True") + '    return recover("a")\n', 3, "number"),
    "window_huge": (HEAD.replace("2.0", "9" * 500) + '    return recover("a")\n', 3, "between"),
    "window_computed": (HEAD.replace("2.0", "1 + 1") + '    return recover("a")\n', 3, "number"),
    "window_twice": (HEAD.replace("SKILL", "WINDOW_S") + '    return abort("a")\n', 4, "twice"),
    "skill_is_a_path": (HEAD.replace("regrasp", "../x") + '    return recover("a")\n', 4, "SKILL"),
    "a_bare_word": ("ab", 1, "outside"),
    "constant_of_system": (HEAD.replace("SKILL", "__all__") + "    return ok()\n", 4, "none of"),
    "import_above": ("import os\n" + HEAD + "    return ok()\n", 1, "import"),
    "class_above": ("class A:\n    pass\n" + HEAD + "    return ok()\n", 1, "a class"),
    "call_above": ('"""A."""\nprint("x")\n' + HEAD + "    return ok()\n", 2, "outside"),
    "second_function": (HEAD + "    return ok()\ndef other():\n    pass\n", 9, "'other'"),
    "check_twice": (HEAD + "    return ok()\ndef check(w, p):\n    return ok()\n", 9, "twice"),
    "async_check": (HEAD.replace("def", "async def") + "    return ok()\n", 7, "async"),
    "await": (HEAD.replace("def", "async def") + "    x = await w\n", 7, "async"),
    "decorator": (HEAD.replace("def", "@eval\ndef") + "    return ok()\n", 7, "decorators"),
    "default_argument": (HEAD.replace("p)", "p=eval)") + "    return ok()\n", 7, "default"),
    "keyword_only_default": (HEAD.replace("p)", "*, p=1)") + "    return ok()\n", 7, "default"),
    "annotated_argument": (HEAD.replace("p)", "p: int)") + "    return ok()\n", 7, "annotations"),
    "annotated_result": (HEAD.replace("):", ") -> int:") + "    return ok()\n", 7, "annotations"),
    "more_arguments": (HEAD.replace("p)", "p, q)") + "    return ok()\n", 7, "def check(w, p)"),
    "star_parameters": (HEAD.replace("p)", "*p)") + "    return ok()\n", 7, "def check(w, p)"),
    "swapped_arguments": (HEAD.replace("w, p", "p, w") + "    return ok()\n", 7, "def check(w, p)"),
    "nul": (HEAD + "    return ok()\n\0", 9, "NUL"),
    "latin_1": ('"""Gr\xf6\xdfe."""\n'.encode("latin-1"), 1, "UTF-8"),
    "bad_utf_8": (HEAD.encode() + b"    x = 1.0 # \xff\n", 8, "UTF-8"),
    "lone_surrogate": (HEAD + "    # \ud800\n", 8, "UTF-8"),
    "byte_order_mark": ("\ufeff" + HEAD + "    return ok()\n", 1, "invisible"),
    "form_feed": (HEAD + "\f    return ok()\n", 8, "invisible"),
    "right_to_left_override": (HEAD + "    # \u202e\n    return ok()\n", 8, "invisible"),
    "zero_width_space": (HEAD + "    x\u200b = 1.0\n", 8, "invisible"),
    "carriage_return": (HEAD + "    # a\r    import os\n", 8, "invisible"),
    "name_that_folds_to_ascii": (HEAD + "    x = ｅval\n", 8, "plain ASCII"),
    "name_in_greek": (HEAD + "    σ = 1.0\n    return ok()\n", 8, "plain ASCII"),
    "too_long": (HEAD + "    # " + "a" * 17000, 1, "longer"),
    "too_long_in_bytes": (HEAD + "    # " + "é" * 9000, 1, "longer"),
    "too_many_statements": (HEAD + "    x = 1.0\n" * 199 + "    return ok()\n", 204, "statements"),
    "endless_minus": (HEAD + "    x = " + "-" * 12000 + "1\n", 8, "too deeply"),
    "endless_attributes": (HEAD + "    x = w" + ".a" * 6000 + "\n", 8, "too deeply"),
    "endless_calls": (HEAD + "    x = now" + "()" * 6000 + "\n", 8, "too deeply"),
    "endless_sum": (HEAD + "    x = 1" + "+1" * 6000 + "\n", 8, "too deeply"),
    "endless_lambda": (HEAD + "    x = " + "lambda:" * 1500 + "1\n", 8, "too deeply"),
    "endless_parentheses": (HEAD + "    x = " + "(" * 6000 + ")" * 6000 + "\n", 8, "no Python"),
    "endless_digits": (HEAD + "    x = " + "9" * 9000 + "\n", 8, "no Python"),
    "deep_attribute": (HEAD + "    x = w" + ".a" * 150 + "\n", 8, "too deeply"),
    "deep_blocks": (
        HEAD
        + "".join("    " + "  " * k + "if 1.0 > 0.0:\n" for k in range(25))
        + "    " + "  " * 25 + "return ok()\n    return ok()\n",
        28,
        "stand within each other",
    ),
    "long_elif": (
        HEAD + "    if 1.0 > 2.0:\n        pass\n" + "    elif 1.0 > 2.0:\n        pass\n" * 60,
        47,
        "stand within each other",
    ),
    "series_that_double": (
        HEAD + "    a = w.ee_speed + w.ee_speed\n"
        + "".join(f"    {b} = {a} + {a}\n" for a, b in zip("abcdefghij", "bcdefghijk", strict=True))
        + "    return ok()\n",
        13,
        "units of work",
    ),
    "much_work": (HEAD + "    x = path_length(w.ee_x)\n" * 40 + "    return ok()\n", 7, "units"),
    "work_of_arming": (
        HEAD.replace("\n\n\n", '\nARMED_WHEN = "' + "held(w.ee_speed > 1) and " * 20 + 'True"\n\n')
        + "    x = path_length(w.ee_x)\n" * 8 + '    return recover("a")\n',
        5,
        "units",
    ),
    "arming_calls": (
        HEAD.replace("\n\n\n", "\nARMED_WHEN = \"__import__('os').system('true')\"\n\n")
        + '    return recover("a")\n',
        5,
        "ARMED_WHEN: only operators",
    ),
    "arming_statement": (
        HEAD.replace("\n\n\n", '\nARMED_WHEN = "import os"\n\n') + '    return recover("a")\n',
        5,
        "one expression",
    ),
    "arming_number": (
        HEAD.replace("\n\n\n", '\nARMED_WHEN = "now(w.holding)"\n\n') + '    return recover("a")\n',
        5,
        "a condition",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", list(IN_CHECK))
def test_hostile_statement_is_refused_at_its_line(name: str) -> None:
    body, reason = IN_CHECK[name]

    problems = problems_of(critic_of(f'{body}\nreturn recover("a")'))

    assert problems
    assert problems[0].line == BODY_LINE
    assert reason in problems[0].reason


@pytest.mark.parametrize("name", list(WHOLE))
def test_hostile_program_is_refused_at_its_line(name: str) -> None:
    source, line, reason = WHOLE[name]

    problems = problems_of(source)

    at_line = [problem.reason for problem in problems if problem.line == line]
    assert any(reason in told for told in at_line), problems


def test_the_set_of_hostile_programs_is_large() -> None:
    assert len(IN_CHECK) + len(WHOLE) >= 60


@pytest.mark.parametrize("feature", ["def check[T](w, p):", "type X = int"])
def test_newer_syntax_of_python_is_refused_whether_or_not_it_is_known(feature: str) -> None:
    head = HEAD.replace("def check(w, p):", feature)

    problems = problems_of(head + '    return recover("a")\n')

    assert problems
    assert problems[0].line in (7, 8)


def test_hostile_program_is_never_run(capsys: pytest.CaptureFixture[str]) -> None:
    problems_of(HEAD + "    print('ran')\n" + "print('ran')\n")

    assert capsys.readouterr().out == ""


def test_a_large_tree_of_small_depth_is_checked_and_not_refused_for_its_depth() -> None:
    terms = " + ".join(["1.0"] * 15)

    assert problems_of(critic_of(f'x = {terms}\nreturn recover("a")')) == ()
