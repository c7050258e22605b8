/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbol/demangle_d.h"

enum { LIMIT = 64 << 10 };

static void expect(const char *mangled, const char *want)
{
	char *got = demangle_d(mangled, LIMIT);

	if (want && got)
		assert_string_equal(got, want);
	else if (want || got)
		fail_msg("%s: %s", mangled, got ? got : "nothing");
	free(got);
}

/* The type of one parameter. */
static void expect_type(const char *mangled, const char *want)
{
	char name[256], text[256];

	snprintf(name, sizeof(name), "_D1m1fF%sZv", mangled);
	snprintf(text, sizeof(text), "m.f(%s)", want);
	expect(name, text);
}

/* One argument of a template, in the form without a length and in the older one with it. */
static void expect_argument(const char *mangled, const char *want)
{
	char name[256], text[256];

	snprintf(text, sizeof(text), "m.f!(%s)", want);
	snprintf(name, sizeof(name), "_D1m__T1f%sZi", mangled);
	expect(name, text);
	snprintf(name, sizeof(name), "_D1m%zu__T1f%sZi", strlen(mangled) + 6, mangled);
	expect(name, text);
}

static void test_names(void **state)
{
	expect("_Dmain", "D main");
	expect("_D3mod1xi", "mod.x");
	expect("_D3mod3funFZv", "mod.fun()");
	expect("_D3mod3funUiZv", "mod.fun(int)");
	expect("_D3mod5outerFiZ5innerMFaZv", "mod.outer(int).inner(char)");
	expect("_D3mod3funFZ4__S15innerFZv", "mod.fun().inner()");
	expect("_D3mod1C6__ctorMFiZC3mod1C", "mod.C.this(int)");
	expect("_D3mod1C6__dtorMFZv", "mod.C.~this()");
	expect("_D3mod1S10__postblitMFZv", "mod.S.this(this)");
	expect("_D3mod1C6__initZ", "initializer for mod.C");
	expect("_D3mod1C6__vtblZ", "vtable for mod.C");
	expect("_D3mod1C7__ClassZ", "ClassInfo for mod.C");
	expect("_D3mod1I11__InterfaceZ", "Interface for mod.I");
	expect("_D3mod12__ModuleInfoZ", "ModuleInfo for mod");
	expect("_D3mod3fooQeFZv", "mod.foo.foo()");
	expect("_D3mod003fooFZv", "mod.foo()");
	expect("_D3mod1S1fMONgxFZv", "mod.S.f() shared inout const");
	expect("_D3mod3funFNaNbNcNdNeNfNiNjNlNmiZi", "mod.fun(int)");
	expect("_D3mod3funFZv.part.0.cold", "mod.fun() [clone .part.0.cold]");
}

static void test_types(void **state)
{
	static const char *const basic[][2] = {
		{"v", "void"},         {"g", "byte"},           {"h", "ubyte"},
		{"s", "short"},        {"t", "ushort"},         {"i", "int"},
		{"k", "uint"},         {"l", "long"},           {"m", "ulong"},
		{"zi", "cent"},        {"zk", "ucent"},         {"f", "float"},
		{"d", "double"},       {"e", "real"},           {"o", "ifloat"},
		{"p", "idouble"},      {"j", "ireal"},          {"q", "cfloat"},
		{"r", "cdouble"},      {"c", "creal"},          {"b", "bool"},
		{"a", "char"},         {"u", "wchar"},          {"w", "dchar"},
		{"n", "typeof(null)"}, {"Nn", "typeof(*null)"},
	};

	for (size_t i = 0; i < sizeof(basic) / sizeof(basic[0]); i++)
		expect_type(basic[i][0], basic[i][1]);
	expect_type("Aya", "immutable(char)[]");
	expect_type("G3G4i", "int[4][3]");
	expect_type("HAyai", "int[immutable(char)[]]");
	expect_type("PPxOv", "const(shared(void))**");
	expect_type("Ngi", "inout(int)");
	expect_type("NhG4f", "__vector(float[4])");
	expect_type("C1a1b", "a.b");
	expect_type("S1aE1bT1c", "a, b, c");
	expect_type("B2ia", "Tuple!(int, char)");
	expect_type("IKiJiKiLiMiNkiMNkPiNkMPi", "in ref int, out int, ref int, lazy int, scope int, return int, "
						"scope return int*, return scope int*");
	expect_type("PFiaZl", "long(int, char) function");
	expect_type("PFNaNbZPFZi", "int() function() pure nothrow function");
	expect_type("PUZiPWZiPVZiPRZiPYZi",
		    "extern(C) int() function, extern(Windows) int() function, extern(Pascal) int() function, "
		    "extern(C++) int() function, extern(Objective-C) int() function");
	expect_type("DFNfiZv", "void(int) @safe delegate");
	expect_type("DxFZv", "void() delegate const");
	expect_type("FAiXv", "void(int[]...) function");
	expect_type("FiYv", "void(int, ...) function");
	expect_type("S3fooQf", "foo, foo");
	expect_type("DFiZvDQf", "void(int) delegate, void(int) delegate");
}

static void test_templates(void **state)
{
	expect("_D1m__T1fTiTaZQhFZv", "m.f!(int, char).f()");
	expect("_D1m8__U1fTiZ1xi", "m.f!(int).x");
	expect_argument("HTi", "int");
	expect_argument("S1a", "a");
	expect_argument("S_D1a1bFiZv", "a.b(int)");
	expect("_D1m19__T1fS101a3foo3barZi", "m.f!(a.foo.bar)"); /* 10 and 1a, not 101 */
	expect("_D1m19__T1fS10_D1a1bFiZvZi", "m.f!(a.b(int))");
	expect_argument("X3abc", "abc");
	expect_argument("Vii5", "5");
	expect_argument("ViN5", "-5");
	expect_argument("Vhi5", "5u");
	expect_argument("Vli5", "5L");
	expect_argument("Vmi5", "5uL");
	expect_argument("Vbi1", "true");
	expect_argument("Vai65", "'A'");
	expect_argument("Vai10", "'\\x0a'");
	expect_argument("Vui1000", "'\\u03e8'");
	expect_argument("Vwi128512", "'\\U0001f600'");
	expect_argument("VPin", "null");
	expect_argument("Vde08P1", "0x0.8p1");
	expect_argument("VdeN18PN3", "-0x1.8p-3");
	expect_argument("VdeNAN", "NaN");
	expect_argument("VdeNINF", "-Inf");
	expect_argument("Vrc08P1c08P2", "0x0.8p1+0x0.8p2i");
	expect_argument("VAyaa3_610a22", "\"a\\n\"\"");
	expect_argument("VAyww1_41", "\"A\"w");
	expect_argument("VAiA2i1i2", "[1, 2]");
	expect_argument("VHiiA1i1i2", "[1:2]");
	expect_argument("VS1a1bS2i1a1_41", "a.b(1, \"A\")");
	expect_argument("VPFZvf_D1a1bFZv", "a.b()");
}

static void test_not_d(void **state)
{
	static const char *const names[] = {
		"",
		"_",
		"_D",
		"_D3",
		"_D3foo",
		"_Dfoo",
		"_D0",
		"_D99foo",
		"_D1aF",
		"_D1aM",
		"_D1aFZ",
		"_D1aFNzZv",
		"_D1__T",
		"_D1m__T1f",
		"_D1m__T1fVi",
		"_D1m__T1fVAyaa9_41Zi",
		"_D1mQa",
		"_D1mQz",
		"_D1mQA",
		"_D1mB",
		"_D1aG",
		"_D1aiX",
		"_D1azz",
		"_D99999999999999999999a",
		"_D1m__T1fVAiA99999999Zi",
		"_D1aB99999999i",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		expect(names[i], NULL);
}

/* Each parameter holds the one before twice: written out, the last would fill a disk. */
static void test_absurd_length(void **state)
{
	char name[4096] = "_D1m1fFS1a__T1bTiTiZ";
	size_t before = strlen("_D1m1fF");

	for (int i = 0; i < 60; i++) {
		size_t at = strlen(name);

		strcat(name, "S1a__T1bT");
		for (int twice = 0; twice < 2; twice++) {
			size_t distance = strlen(name) - before;

			sprintf(name + strlen(name), "Q%c%c%c", (char)('A' + distance / 676),
				(char)('A' + distance / 26 % 26), (char)('a' + distance % 26));
			strcat(name, twice ? "Z" : "T");
		}
		before = at;
	}
	strcat(name, "Zv");
	expect(name, NULL);
}

static void test_deep(void **state)
{
	size_t len = 8000;
	char *name = malloc(len + 1);

	memset(name, 'P', len);
	memcpy(name, "_D1m1fF", 7);
	memcpy(name + len - 3, "iZv", 4);
	expect(name, NULL);
	free(name);
}

/* A reference to what it is itself part of. */
static void test_endless(void **state)
{
	expect("_D1m1fFPQbZv", NULL);
	expect("_D1m1fFAQbAQdZv", NULL);
	expect("_D1m1fFDFQcZvZv", NULL);
}

static void test_cut_anywhere(void **state)
{
	static const char whole[] = "_D3std9exception__T11doesPointToTASQBh5regex8internal2ir10NamedGroupTQBkTvZQCe"
				    "FNaNbNiNeKxASQDlQCeQCbQBvQBvKxQtVAyaa3_616263Zb";
	char name[sizeof(whole)];

	for (size_t len = 0; len < sizeof(whole); len++) {
		memcpy(name, whole, len);
		name[len] = '\0';
		free(demangle_d(name, LIMIT));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),   cmocka_unit_test(test_types),         cmocka_unit_test(test_templates),
		cmocka_unit_test(test_not_d),   cmocka_unit_test(test_absurd_length), cmocka_unit_test(test_deep),
		cmocka_unit_test(test_endless), cmocka_unit_test(test_cut_anywhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
