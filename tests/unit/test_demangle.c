/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "symbol/demangle.h"

static void expect(const char *mangled, const char *want)
{
	char *got = demangle(mangled);

	if (want) {
		assert_non_null(got);
		assert_string_equal(got, want);
	} else {
		assert_null(got);
	}
	free(got);
}

static void test_cplusplus(void **state)
{
	expect("_ZN3foo3barEi", "foo::bar(int)");
	expect("_Z3addIiET_S0_S0_", "add<int>(int, int)"); /* without its return type */
	expect("_ZZ4mainENKUlvE_clEv", "main::{lambda()#1}::operator()() const");
	expect("_Z3foov.cold", "foo() [clone .cold]");
}

static void test_rust(void **state)
{
	expect("_ZN4core3ptr13drop_in_place17h0123456789abcdefE", "core::ptr::drop_in_place");
	expect("_ZN3std2rt10lang_start28_$u7b$$u7b$closure$u7d$$u7d$17h0123456789abcdefE",
	       "std::rt::lang_start::{{closure}}");
	expect("_RNvCs1234_7mycrate3foo", "mycrate::foo");
	expect("_RINvNtC3std3mem8align_ofdE", "std::mem::align_of::<f64>");
	/* As rustc 1.63 and 1.95 name functions whose names std::any::type_name told. */
	expect("_RINvNtCskK7mfDs1mzF_1m5inner4flagKb1_Kc78_Kan5_EB4_", "m::inner::flag::<true, 'x', -5>");
	expect("_RINvNtCskK7mfDs1mzF_1m5inneru9gre_6ka8iReEB4_", "m::inner::größe::<&str>");
	expect("_RNvXs0_NtCskK7mfDs1mzF_1m5innerINtNtCslNYArtu3iFV_5alloc3vec3VecyENtB5_5Speak5speakB7_",
	       "<alloc::vec::Vec<u64> as m::inner::Speak>::speak");
	expect("_RNCINvNtCsdyIG5SqMl5y_3std2rt10lang_startuE0Cs6xObwDLdFGl_1m.llvm.12001051633234580868",
	       "std::rt::lang_start::<()>::{closure#0}");
	expect("_ZN1m5inner19Holder$LT$T$C$_$GT$3get17h9197890702d915a7E", "m::inner::Holder<T,_>::get");
}

static void test_letters_of_old_rust(void **state)
{
	expect("_ZN1m5inner13gr$uf6$$udf$e17hccf98f0d58f8ca0eE", "m::inner::größe");
	expect("_ZN1m7$u4e2d$17hccf98f0d58f8ca0eE", "m::中");
	expect("_ZN1m8$u1f600$17hccf98f0d58f8ca0eE", "m::😀");
	/* Not what a terminal would take for a command, and not half a character. */
	expect("_ZN1m5$u9b$17hccf98f0d58f8ca0eE", "m::$u9b$");
	expect("_ZN1m7$ud800$17hccf98f0d58f8ca0eE", "m::$ud800$");
	expect("_ZN1m9$u110000$17hccf98f0d58f8ca0eE", "m::$u110000$");
}

static void test_d(void **state)
{
	expect("_Dmain", "D main");
	expect("_D3mod1S6methodMxFAyaiZv", "mod.S.method(immutable(char)[], int) const");
}

/* What the target has put into a name is not for the demangler to repair, but it must survive it. */
static void test_odd_bytes(void **state)
{
	static const char *const names[] = {
		"_ZN3f\xc3\xb6o3barEv",
		"_ZN3f\xc3",
		"_Z3\xff\xfe\xfdv",
		"_ZN2\x1b[3barEv",
		"_RNvC1m4\xf0\x9f\x98",
		"_RNvC1mu3\xff\xff\xff",
		"_D2\xc3\xb6"
		"Fv",
		"_D3\xf0\x9f\x98"
		"FZv",
		"_D3\x1b[2JZ",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		free(demangle(names[i]));
}

/* libiberty's own limit would give up on this. */
static void test_long_template(void **state)
{
	char name[4096] = "_Z1fI", text[8192] = "f<";
	char *got;

	for (int i = 0; i < 400; i++) {
		strcat(name, "St5dequeI");
		strcat(text, "std::deque<");
	}
	strcat(name, "i");
	strcat(text, "int");
	for (int i = 0; i < 400; i++) {
		strcat(name, "E");
		strcat(text, i ? " >" : ">");
	}
	strcat(name, "Evv");
	strcat(text, " >()");
	got = demangle(name);
	assert_non_null(got);
	assert_string_equal(got, text);
	free(got);
}

/* A C name must not turn into something else by accident: "i" would be "int" as a type. */
static void test_c_names_stay(void **state)
{
	static const char *const names[] = {
		"main", "i",   "f",   "read", "_start", "__read", "_Z",         "_R",
		"_D",   "_D3", "_ZN", "_",    "",       "_ZL",    "__ZN3fooEv", "_GLOBAL__sub_I_main"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		expect(names[i], NULL);
}

static void test_damaged(void **state)
{
	static const char whole[] = "_ZNSt6thread11_State_implINS_8_InvokerISt5tupleIJPFvvEEEEEE6_M_runEv";
	char name[sizeof(whole)];

	for (size_t len = 0; len < sizeof(whole); len++) {
		memcpy(name, whole, len);
		name[len] = '\0';
		free(demangle(name));
	}
}

/* Each pair holds the one before twice: written out, the last would fill a disk. */
static void test_absurd_length(void **state)
{
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	char name[1024] = "_Z1fSt4pairIiiE";

	for (int i = 0; i < 35; i++)
		sprintf(name + strlen(name), "S_IS%c_S%c_E", digits[i], digits[i]);
	expect(name, NULL);
}

static void test_too_long_to_look_at(void **state)
{
	size_t len = 1 << 20;
	char *name = malloc(len + 1);

	memset(name, 'P', len);
	memcpy(name, "_Z1f", 4);
	name[len] = '\0';
	expect(name, NULL);
	free(name);
}

/* A back reference may lead to what holds it. */
static void test_rust_that_holds_itself(void **state)
{
	expect("_RNuB_4_", NULL);
	expect("_RNvB_3foo", NULL);
	expect("_RINvC1a1bB_E", NULL);
}

/* Deep nesting hits libiberty's recursion limit instead of the end of our stack. */
static void test_deep_nesting(void **state)
{
	size_t len = 20000;
	char *name = malloc(len + 1);

	memset(name, 'P', len);
	memcpy(name, "_Z1f", 4);
	name[len - 1] = 'i';
	name[len] = '\0';
	free(demangle(name));
	free(name);
}

/* PRE, as often as there is room UNIT, then MID, as often CLOSE, and POST. */
struct shape {
	const char *pre, *unit, *mid, *close, *post;
};

/* What makes libiberty recurse, or keep much on its stack. */
static const struct shape shapes[] = {
	{"_Z1f", "P", "i", "", ""},
	{"_Z1f", "K", "i", "", ""},
	{"_Z1f", "PK", "i", "", ""},
	{"_Z1f", "FvP", "i", "E", ""},
	{"_Z1f", "A_", "i", "", ""},
	{"_Z1f", "M1a", "i", "", ""},
	{"_Z1f", "N1aI", "i", "EE", ""},
	{"_Z1f", "UlP", "i", "E_", ""},
	{"_Z1f", "1aI", "S_", "E", ""},
	{"_Z1fI", "1aI", "i", "E", "Evv"},
	{"_Z1fI", "J", "i", "E", "Evv"},
	{"_Z1fI", "L_Z1fI", "i", "EE", "Evv"},
	{"_Z1fIX", "pl", "Li1E", "Li1E", "EEvv"},
	{"_Z1fIX", "il", "", "E", "EEvv"},
	{"_Z", "Z1f", "v", "E", ""},
	{"_Z", "cv", "i", "", "v"},
	{"_ZN", "1aIiE", "", "", "E"},
	{"_Z1fIiEv1bI", "S_IE", "", "RT_", "ES1_S2_"}, /* many templates and many scopes */
	{"_ZN", "1a", "", "", "17h0123456789abcdefE"},
	{"_RINvC1a1b", "R", "u", "", "E"},
	{"_RINvC1a1b", "T", "u", "E", "E"},
	{"_RINvC1a1b", "FG_", "", "Eu", "E"},
	{"_R", "I", "NvC1a1b", "uE", ""},
	{"_R", "Nv", "C1a", "1b", ""},
	{"_R", "MC1a", "u", "", ""},
};

static void write_shape(const struct shape *shape, size_t len, char *out)
{
	size_t fixed = strlen(shape->pre) + strlen(shape->mid) + strlen(shape->post);
	size_t times = (len - fixed) / (strlen(shape->unit) + strlen(shape->close));

	out = stpcpy(out, shape->pre);
	for (size_t i = 0; i < times; i++)
		out = stpcpy(out, shape->unit);
	out = stpcpy(out, shape->mid);
	for (size_t i = 0; i < times; i++)
		out = stpcpy(out, shape->close);
	strcpy(out, shape->post);
}

/* In a child whose stack cannot grow beyond that. */
static void demangle_with_stack(const char *name, rlim_t bytes)
{
	const struct rlimit limit = {.rlim_cur = bytes, .rlim_max = bytes};
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0) {
		if (setrlimit(RLIMIT_STACK, &limit) < 0)
			_exit(1);
		free(demangle(name));
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (status != 0)
		print_error("%.40s…, %zu bytes\n", name, strlen(name));
	assert_int_equal(status, 0);
}

static void test_small_stack(void **state)
{
	static const size_t lengths[] = {60, 200, 600, 1000, 1500, 4000, 8000};
	char name[8192];

	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
		for (size_t k = 0; k < sizeof(lengths) / sizeof(lengths[0]); k++) {
			write_shape(&shapes[i], lengths[k], name);
			demangle_with_stack(name, 256 << 10);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cplusplus),
		cmocka_unit_test(test_rust),
		cmocka_unit_test(test_letters_of_old_rust),
		cmocka_unit_test(test_d),
		cmocka_unit_test(test_odd_bytes),
		cmocka_unit_test(test_long_template),
		cmocka_unit_test(test_c_names_stay),
		cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_absurd_length),
		cmocka_unit_test(test_too_long_to_look_at),
		cmocka_unit_test(test_rust_that_holds_itself),
		cmocka_unit_test(test_deep_nesting),
		cmocka_unit_test(test_small_stack),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
