/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef STAKEOUT_BPF_WAIT_SUMS_H
#define STAKEOUT_BPF_WAIT_SUMS_H

/* Finished waits, added up: a thread's entries change only while it gets a CPU. Waits that do not fit are sent. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, OFFCPU_MAX_SUMS);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct offcpu_key);
	__type(value, struct offcpu_sums);
} sums SEC(".maps");

/* By the numbers of these: which of the many waits of a row were how long. What does not fit is sent, too. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, OFFCPU_MAX_LENGTHS);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u32);
	__type(value, struct offcpu_lengths_counted);
} lengths SEC(".maps");

__u32 nsums;

static const struct offcpu_sums no_waits;
static const struct offcpu_lengths_counted no_lengths;

/* False when there is no room. */
static bool count_length(struct offcpu_sums *sum, __u32 bucket)
{
	struct offcpu_lengths_counted *counted;
	__u64 n = sum->count;

	if (n < OFFCPU_FIRST_WAITS) {
		sum->first[n] = bucket;
		return true;
	}
	counted = bpf_map_lookup_elem(&lengths, &sum->number);
	if (!counted) {
		bpf_map_update_elem(&lengths, &sum->number, &no_lengths, BPF_NOEXIST);
		counted = bpf_map_lookup_elem(&lengths, &sum->number);
	}
	if (!counted || bucket >= OFFCPU_BUCKETS || counted->counts[bucket] == -1u)
		return false;
	counted->counts[bucket]++;
	return true;
}

/* False when there is no room. */
static bool add_up(const struct offcpu_wait *wait, struct offcpu_sums *sum, bool sent)
{
	__u32 bucket = offcpu_bucket_of(wait->duration_ns);

	if (bucket >= OFFCPU_BUCKETS)
		return false;
	if (!sum) {
		bpf_map_update_elem(&sums, &wait->key, &no_waits, BPF_NOEXIST);
		sum = bpf_map_lookup_elem(&sums, &wait->key);
		if (!sum)
			return false;
		sum->min_ns = -1ull;
		sum->number = __sync_fetch_and_add(&nsums, 1);
		sum->waker_tgid = wait->waker_tgid;
		__builtin_memcpy(sum->waker_comm, wait->waker_comm, OFFCPU_COMM);
	}
	sum->stack_missing = !sent;
	if (!count_length(sum, bucket))
		return false;
	sum->count++;
	sum->unfinished += wait->flags & OFFCPU_UNFINISHED;
	sum->total_ns += wait->duration_ns;
	sum->runnable_ns += wait->runnable_ns;
	if (wait->duration_ns > sum->max_ns)
		sum->max_ns = wait->duration_ns;
	if (wait->duration_ns < sum->min_ns)
		sum->min_ns = wait->duration_ns;
	__builtin_memcpy(sum->comm, wait->comm, OFFCPU_COMM);
	return true;
}

#endif
