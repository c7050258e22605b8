/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include <stdlib.h>

#include "report/text_tasks.h"
#include "sample.h"

struct fixture {
	struct snapshot *snap;
	struct trace trace;
	struct task_groups groups;
	struct text text;
	char *got;
	size_t len;
};

static void begin(struct fixture *f, bool merge)
{
	const struct trace *traces[] = {&f->trace};

	*f = (struct fixture){.snap = sample_snapshot()};
	sample_trace(&f->trace, f->snap);
	sample_tasks(&f->trace);
	assert_int_equal(task_groups_init(&f->groups, traces, 1, merge), 0);
	f->text.out = open_memstream(&f->got, &f->len);
	assert_non_null(f->text.out);
}

static void end(struct fixture *f)
{
	free(f->got);
	task_groups_deinit(&f->groups);
	trace_deinit(&f->trace);
	snapshot_destroy(f->snap);
}

static void test_blocks(void **state)
{
	const struct report_options options = {.width = 100};
	struct fixture f;

	begin(&f, true);
	text_tasks(&f.text, &f.groups, &options, false);
	fclose(f.text.out);
	assert_string_equal(f.got,
			    "\nasyncio: 16 tasks\n"
			    "\ntask busy  running  in the loop of tid 4711\n"
			    "  #0  py  main  at srv/app.py:30\n"
			    "  -- it runs: what it calls is in the stack of its thread\n"
			    "\ntask Task-1  suspended  in the loop of tid 4711\n"
			    "  awaits Task 'Task-2'\n"
			    "  #0  py  main  at srv/app.py:30\n"
			    "\ntask ready  suspended  in the loop of tid 4711\n"
			    "  awaits nothing: can go on\n"
			    "  #0  py  main  at srv/app.py:30\n"
			    "  -- frames are missing: a coroutine could not be read\n"
			    "\ntask through  suspended  in the loop of tid 4711\n"
			    "  awaits Future through Reader\n"
			    "  #0  py  main  at srv/app.py:30\n"
			    "\n11 tasks  suspended  in the loop of tid 4711\n"
			    "  Task-2, Task-3, Task-4, Task-5, Task-6, Task-7, Task-8, Task-9, Task-10, Task-11 … and 1 more\n"
			    "  awaits Future\n"
			    "  #0  py  sleep  at asyncio/tasks.py:718\n"
			    "  #1  py  Worker.run  at srv/app.py:12\n"
			    "\ntask ?  not started\n"
			    "  #0  py  main  at srv/app.py:30\n");
	assert_true(text_tasks_lines(&f.groups) >= 20);
	end(&f);
}

static void test_table(void **state)
{
	struct fixture f;

	begin(&f, true);
	text_tasks_table(&f.text, &f.groups, 86, true);
	fclose(f.text.out);
	assert_string_equal(f.got, "\nasyncio: 16 tasks (pid 4711)\n"
				   "  tasks  state        task                     in\n"
				   "      1  running      busy                     main\n"
				   "      1  suspended    Task-1                   main (awaits Task 'Task-2')\n"
				   "      1  suspended    ready                    main\n"
				   "      1  suspended    through                  main (awaits Future through Reader)\n"
				   "     11  suspended    Task-2 …                 Worker.run (awaits Future)\n"
				   "      1  not started  ?                        main\n");
	end(&f);
}

/* Names are the program's: they cannot reach the terminal. */
static void test_hostile_names(void **state)
{
	const struct report_options options = {0};
	struct fixture f;

	begin(&f, false);
	text_tasks(&f.text, &f.groups, &options, false);
	text_tasks_table(&f.text, &f.groups, 0, false);
	fclose(f.text.out);
	assert_null(strchr(f.got, '\033'));
	assert_non_null(strstr(f.got, "task evil\\x1b[31m"));
	end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_blocks),
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_hostile_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
