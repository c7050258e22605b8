/* SPDX-License-Identifier: MIT */
#include "report/report.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/map.h"
#include "report/shorten.h"
#include "report/text_syscall.h"
#include "report/text_table.h"
#include "report/wait_words.h"
#include "report/why.h"
#include "report/why_words.h"

/*
 * Who waits for whom, as a graph in graphviz's language: a node for a thread, or for several that wait for the same and that nobody waits
 * for; an edge from who waits to who could end that.
 */

enum {
	MOST_NUMBERS = 4, /* of threads of a node */
	NAME_COLUMNS = 48,
};

struct node {
	size_t first, count; /* in `members` */
	bool deadlock;
};

/* Somebody who is waited for and is no thread that was looked at. */
struct outsider {
	enum wait_holder holder;
	pid_t pid, tid;
	bool process; /* any thread of it */
	bool lives;   /* elsewhere */
};

struct graph {
	const struct trace *const *traces;
	size_t n;
	const struct deadlocks *deadlocks;
	VEC(struct node) nodes;
	VEC(const struct trace_thread *) members;
	VEC(struct outsider) outsiders;
	struct u64map owners;	/* threads that somebody waits for */
	struct u64map node_of; /* threads */
	FILE *out;
};

/* A string that is put together before it is quoted. */
struct label {
	char *text;
	size_t len;
	struct text to;
};

static bool label_begin(struct label *l)
{
	*l = (struct label){0};
	l->to.out = open_memstream(&l->text, &l->len);
	return l->to.out;
}

/* Quoted as graphviz wants it: lines end at the left, and what looks like an escape or an entity is none. Frees the label. */
static void label_end(struct label *l, FILE *out)
{
	fclose(l->to.out);
	fputc('"', out);
	for (const char *p = l->text; p && *p; p++) {
		if (*p == '"' || *p == '\\')
			fprintf(out, "\\%c", *p);
		else if (*p == '&')
			fputs("&amp;", out);
		else if (*p == '\n')
			fputs("\\l", out);
		else
			fputc(*p, out);
	}
	fputc('"', out);
	free(l->text);
}

static uint64_t key_of(const struct trace_thread *t)
{
	return (uint64_t)(uintptr_t)t;
}

static bool set(struct u64map *map, const struct trace_thread *t, size_t value)
{
	bool created;
	uint64_t *slot = u64map_put(map, key_of(t), &created);

	if (slot)
		*slot = value;
	return slot;
}

static bool find_owners(struct graph *g)
{
	for (size_t i = 0; i < g->n; i++)
		for (size_t k = 0; k < g->traces[i]->threads.len; k++) {
			const struct trace_thread *t = &g->traces[i]->threads.data[k];
			const struct trace_thread *owner = t->wait.kind ? wait_find_owner(&t->wait, g->traces, g->n) : NULL;

			if (owner && !set(&g->owners, owner, 1))
				return false;
		}
	return true;
}

/* The last `count` members become a node. */
static bool add_node(struct graph *g, size_t count, bool deadlock)
{
	const struct node node = {.first = g->members.len - count, .count = count, .deadlock = deadlock};

	for (size_t i = node.first; i < g->members.len; i++)
		if (!set(&g->node_of, g->members.data[i], g->nodes.len))
			return false;
	return vec_push(&g->nodes, node);
}

static bool add_alone(struct graph *g, const struct trace_thread *t, bool deadlock)
{
	return vec_push(&g->members, t) && add_node(g, 1, deadlock);
}

/* Those of one process that wait for the same and for whom nobody waits are one; the others are by themselves. */
static bool add_group(struct graph *g, const struct trace_thread *const *members, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (u64map_find(&g->owners, key_of(members[i])) && !add_alone(g, members[i], false))
			return false;
	for (size_t p = 0; p < g->n; p++) {
		const size_t before = g->members.len;

		for (size_t i = 0; i < count; i++)
			if (members[i]->snap == g->traces[p]->snap && !u64map_find(&g->owners, key_of(members[i])) && !vec_push(&g->members, members[i]))
				return false;
		if (g->members.len > before && !add_node(g, g->members.len - before, false))
			return false;
	}
	return true;
}

static bool add_nodes(struct graph *g)
{
	_cleanup_(why_groups_deinit) struct why_groups groups = {0};

	if (!find_owners(g) || !why_groups_init(&groups, g->traces, g->n, g->deadlocks, false))
		return false;
	for (size_t i = 0; i < g->deadlocks->len; i++)
		for (size_t k = 0; k < g->deadlocks->data[i].len; k++)
			if (!add_alone(g, g->deadlocks->data[i].data[k], true))
				return false;
	for (size_t i = 0; i < groups.len; i++)
		if (!add_group(g, groups.members + groups.data[i].first, groups.data[i].count))
			return false;
	return true;
}

static void put_place(const struct text *t, const struct trace_thread *thread)
{
	const struct frame *frame = text_table_frame(thread);
	_cleanup_free_ char *name = frame && frame->symbol ? shorten_symbol(frame, NAME_COLUMNS) : NULL;

	if (!name)
		return;
	fputs("in ", t->out);
	text_untrusted(t, name);
	fputc('\n', t->out);
}

/* Not where those that are named are only a hint: who was the last that changed it, or has the CPU. */
static bool has_edge(const struct trace_thread *t)
{
	const struct wait *w = &t->wait;

	if (w->kind == WAIT_CPU || w->kind == WAIT_SYSV_SEMAPHORE || w->kind == WAIT_SYSV_MESSAGE || w->kind == WAIT_SYSV_ROOM)
		return false;
	return w->kind && (w->npeers || wait_has_owner(w) || w->holder == HOLDER_ENDED || w->holder == HOLDER_READERS);
}

/* What it waits for, for free(); where that has a name its address says nothing more. NULL when memory is exhausted. */
static char *words_of(const struct trace_thread *t)
{
	struct label label;
	char *address;

	if (!label_begin(&label))
		return NULL;
	wait_put_doing(&label.to, &t, 1);
	fclose(label.to.out);
	address = label.text && t->wait.variable ? strstr(label.text, " 0x") : NULL;
	if (address)
		*address = '\0';
	return label.text;
}

/* What it does, if no edge tells it. */
static void put_doing(const struct text *t, const struct trace_thread *const *members, size_t count)
{
	const struct trace_thread *thread = members[0];
	_cleanup_free_ char *words = thread->wait.kind ? words_of(thread) : NULL;

	if (has_edge(thread))
		return;
	if (words) {
		fputs(words, t->out);
		why_put_others(t, members, count);
	} else if (thread->thread->state == 'R') {
		fputs("runs, or is ready to", t->out);
	} else if (thread->thread->syscall.state == SYSCALL_IN) {
		text_syscall(t, &thread, 1, 1); /* without the names of parameters */
	} else {
		text_state(t, thread->thread, 0);
	}
	fputc('\n', t->out);
}

static bool have_one_name(const struct trace_thread *const *members, size_t count)
{
	for (size_t i = 1; i < count; i++)
		if (strcmp(trace_thread_name(members[0]), trace_thread_name(members[i])) != 0)
			return false;
	return true;
}

static void put_threads(const struct graph *g, const struct node *node, const struct text *t)
{
	const struct trace_thread *const *members = (const struct trace_thread *const *)g->members.data + node->first;

	const bool same = node->count > 1 && have_one_name(members, node->count);

	if (node->count > 1)
		fprintf(t->out, "%zu threads", node->count);
	if (same) {
		fputs(": ", t->out);
		text_untrusted(t, trace_thread_name(members[0]));
	}
	fputs(node->count > 1 ? "\ntid" : "tid", t->out);
	for (size_t i = 0; i < node->count && i < MOST_NUMBERS; i++) {
		fprintf(t->out, same ? " %d" : " %d ", (int)members[i]->thread->tid);
		if (!same)
			text_untrusted(t, trace_thread_name(members[i]));
		fputs(i + 1 < node->count ? "," : "", t->out);
	}
	fputs(node->count > MOST_NUMBERS ? " …\n" : "\n", t->out);
}

static int put_node(const struct graph *g, size_t i)
{
	const struct node *node = &g->nodes.data[i];
	const struct trace_thread *t = g->members.data[node->first];
	struct label label;

	if (!label_begin(&label))
		return -ENOMEM;
	put_threads(g, node, &label.to);
	put_place(&label.to, t);
	put_doing(&label.to, (const struct trace_thread *const *)g->members.data + node->first, node->count);
	fprintf(g->out, "\t\tn%zu [label=", i);
	label_end(&label, g->out);
	if (node->deadlock)
		fputs(", color=\"#c00000\", fillcolor=\"#ffe4e1\", penwidth=2", g->out);
	else if (t->thread->state == 'R')
		fputs(", fillcolor=\"#e2f3e2\"", g->out);
	else if (!has_edge(t) && !u64map_find(&g->owners, key_of(t)))
		fputs(", color=\"#b0b0b0\", fontcolor=\"#606060\"", g->out);
	fputs("];\n", g->out);
	return 0;
}

/* Each process in a box, if there are several. */
static int put_process(const struct graph *g, const struct snapshot *snap)
{
	struct label label;
	int rc = 0;

	if (g->n > 1) {
		if (!label_begin(&label))
			return -ENOMEM;
		wait_put_process(&label.to, snap->pid, snap->comm);
		fprintf(g->out, "\tsubgraph cluster_%d {\n\t\tlabel=", (int)snap->pid);
		label_end(&label, g->out);
		fputs(";\n", g->out);
	}
	for (size_t i = 0; rc == 0 && i < g->nodes.len; i++)
		if (g->members.data[g->nodes.data[i].first]->snap == snap)
			rc = put_node(g, i);
	if (g->n > 1)
		fputs("\t}\n", g->out);
	return rc;
}

static const struct snapshot *find_process(const struct graph *g, pid_t pid)
{
	for (size_t i = 0; i < g->n; i++)
		if (g->traces[i]->snap->pid == pid)
			return g->traces[i]->snap;
	return NULL;
}

static void put_outsiders_name(const struct graph *g, const struct outsider *o, const char *comm, const struct text *t)
{
	const struct snapshot *known = find_process(g, o->pid);

	if (o->holder == HOLDER_READERS) {
		fputs("readers\nnot recorded\n", t->out);
		return;
	}
	if (o->holder == HOLDER_ENDED && !o->tid) {
		fputs("a thread\nhas ended\n", t->out);
		return;
	}
	if (o->holder == HOLDER_ENDED) {
		fprintf(t->out, "tid %d\n%s\n", (int)o->tid, o->lives ? "no thread of the process" : "has ended");
		return;
	}
	if (!o->process)
		fprintf(t->out, "tid %d\n", (int)o->tid);
	if (known && !o->process) { /* it was not there yet */
		wait_put_process(t, known->pid, known->comm);
		fputs("\nnot looked at\n", t->out);
		return;
	}
	if (o->pid)
		wait_put_process(t, o->pid, comm);
	else
		fputs("of another process", t->out);
	fputs(known ? "\nany thread of it\n" : "\nnot looked at\n", t->out);
}

static bool is_same(const struct outsider *a, const struct outsider *b)
{
	return a->holder == b->holder && a->pid == b->pid && a->tid == b->tid && a->process == b->process;
}

/* Its number, after its node was written if it is met for the first time; SIZE_MAX when memory is exhausted. */
static size_t put_outsider(struct graph *g, const struct outsider *o, const char *comm)
{
	struct label label;
	size_t i;

	for (i = 0; i < g->outsiders.len; i++)
		if (is_same(&g->outsiders.data[i], o))
			return i;
	if (!vec_push(&g->outsiders, *o) || !label_begin(&label))
		return SIZE_MAX;
	put_outsiders_name(g, o, comm, &label.to);
	fprintf(g->out, "\tx%zu [shape=ellipse, style=\"filled,dashed\", label=", i);
	label_end(&label, g->out);
	fputs("];\n", g->out);
	return i;
}

/* Who has to act: the processes, or the thread. */
static struct outsider outsider_of(const struct wait *w, uint32_t peer)
{
	if (w->npeers)
		return (struct outsider){.holder = HOLDER_THREAD, .pid = w->peers[peer].pid, .process = true};
	return (struct outsider){.holder = w->holder, .pid = w->owner_pid, .tid = w->owner, .lives = w->owner_lives};
}

/* "mutex cache_lock": that it is waited for is what an edge means. */
static bool put_edge_label(const struct graph *g, const struct trace_thread *t)
{
	static const char waits[] = "waits for ";
	_cleanup_free_ char *words = words_of(t);
	struct label label;

	if (!words || !label_begin(&label))
		return false;
	fputs(strncmp(words, waits, sizeof(waits) - 1) == 0 ? words + sizeof(waits) - 1 : words, label.to.out);
	if (t->wait.timed)
		fputs("\nnot for ever", label.to.out);
	label_end(&label, g->out);
	return true;
}

static int put_edge(const struct graph *g, size_t from, const char *kind, size_t to, bool deadlock)
{
	const struct trace_thread *t = g->members.data[g->nodes.data[from].first];

	fprintf(g->out, "\tn%zu -> %s%zu [label=", from, kind, to);
	if (!put_edge_label(g, t))
		return -ENOMEM;
	if (deadlock)
		fputs(", color=\"#c00000\", fontcolor=\"#c00000\", penwidth=2", g->out);
	if (!t->wait.certain)
		fputs(", style=dashed", g->out);
	else if (t->wait.timed)
		fputs(", color=\"#909090\"", g->out);
	fputs("];\n", g->out);
	return 0;
}

/* A process of several threads that wait for ever is led on to these. */
static void put_ways_on(const struct graph *g, size_t outsider, const struct deadlock *d, pid_t pid)
{
	for (size_t i = 0; i < d->len; i++) {
		const uint64_t *node = d->data[i]->snap->pid == pid ? u64map_find(&g->node_of, key_of(d->data[i])) : NULL;

		if (node)
			fprintf(g->out, "\tx%zu -> n%zu [color=\"#c00000\", penwidth=2, arrowhead=none];\n", outsider, (size_t)*node);
	}
}

static int put_edges(struct graph *g, size_t from)
{
	const struct node *node = &g->nodes.data[from];
	const struct trace_thread *t = g->members.data[node->first], *owner = wait_find_owner(&t->wait, g->traces, g->n);
	const struct deadlock *d = node->deadlock ? deadlocks_with(g->deadlocks, t) : NULL;
	const uint64_t *to = owner ? u64map_find(&g->node_of, key_of(owner)) : NULL;
	int rc = 0;

	if (!has_edge(t))
		return 0;
	if (to)
		return put_edge(g, from, "n", (size_t)*to, d && deadlocks_with(g->deadlocks, owner) == d);
	for (uint32_t i = 0; rc == 0 && i < t->wait.npeers + !t->wait.npeers; i++) {
		const struct outsider o = outsider_of(&t->wait, i);
		const size_t known = g->outsiders.len, number = put_outsider(g, &o, t->wait.npeers ? t->wait.peers[i].comm : t->wait.owner_comm);

		if (number == SIZE_MAX)
			return -ENOMEM;
		rc = put_edge(g, from, "x", number, d);
		if (d && number == known)
			put_ways_on(g, number, d, o.pid);
	}
	return rc;
}

static void put_notes(const struct graph *g, const struct notes *notes)
{
	const struct text text = {.out = g->out};

	for (size_t i = 0; i < notes->len; i++) {
		fputs("// note: ", g->out);
		text_untrusted(&text, notes->data[i]);
		fputc('\n', g->out);
	}
}

static int put_graph(struct graph *g)
{
	int rc = 0;

	for (size_t i = 0; i < g->n; i++) {
		put_notes(g, &g->traces[i]->snap->notes);
		put_notes(g, &g->traces[i]->notes);
	}
	fputs("digraph waits {\n"
	      "\trankdir=LR;\n"
	      "\tgraph [fontname=\"sans-serif\", fontsize=11, style=\"rounded\", color=\"#808080\", ranksep=0.6, nodesep=0.2];\n"
	      "\tnode [shape=box, style=\"rounded,filled\", fillcolor=\"#ffffff\", fontname=\"sans-serif\", fontsize=10, margin=\"0.1,0.05\"];\n"
	      "\tedge [fontname=\"sans-serif\", fontsize=9];\n",
	      g->out);
	if (g->deadlocks->maybe_more)
		fprintf(g->out, "\tlabel=\"%s\";\n", deadlocks_doubt(g->deadlocks));
	for (size_t i = 0; rc == 0 && i < g->n; i++)
		rc = put_process(g, g->traces[i]->snap);
	for (size_t i = 0; rc == 0 && i < g->nodes.len; i++)
		rc = put_edges(g, i);
	fputs("}\n", g->out);
	return rc;
}

int report_why_dot(const struct trace *const *traces, size_t n, const struct deadlocks *deadlocks, const struct report_options *options, FILE *out)
{
	struct graph g = {.traces = traces, .n = n, .deadlocks = deadlocks, .out = out};
	int rc;

	(void)options;
	report_begin();
	rc = add_nodes(&g) ? put_graph(&g) : -ENOMEM;
	vec_deinit(&g.nodes);
	vec_deinit(&g.members);
	vec_deinit(&g.outsiders);
	u64map_deinit(&g.owners);
	u64map_deinit(&g.node_of);
	return rc < 0 ? rc : report_flush(out);
}
