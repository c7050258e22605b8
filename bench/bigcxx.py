#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Makes a large C++ program with debug info: bigcxx.py DIRECTORY [UNITS]

What makes debug info large and lookups hard is what big C++ programs are made of: many units that each instantiate much
of the standard library with types of their own, and whose small functions are inlined many levels deep. The program is
only looked at, but it does run. Prints its path; a program that is there already is kept.
"""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

UNITS = 28
FLAGS = ["-std=c++17", "-g", "-O2"]
HEADERS = """algorithm any array bitset chrono deque filesystem forward_list fstream functional future iomanip iostream
list locale map memory mutex numeric optional queue random regex set shared_mutex sstream stack string string_view
thread tuple unordered_map unordered_set variant vector""".split()

UNIT = r"""
namespace unit@N@ {

template <int K> struct key {
	std::array<long, K % 5 + 1> parts{};
	std::string text;
	long sum() const { return std::accumulate(parts.begin(), parts.end(), 0L); }
	bool operator<(const key &other) const { return std::tie(parts, text) < std::tie(other.parts, other.text); }
	bool operator==(const key &other) const { return parts == other.parts && text == other.text; }
};

template <int K> struct hash_of {
	size_t operator()(const key<K> &k) const { return std::hash<std::string>{}(k.text) * 31 + size_t(k.sum()); }
};

template <int K> struct shape {
	virtual ~shape() = default;
	virtual double area(const key<K> &) const = 0;
};

template <int K> struct square : shape<K> {
	explicit square(double s) : side(s) {}
	double area(const key<K> &k) const override { return side * side + double(k.sum()); }
	double side;
};

template <int K> struct circle : shape<K> {
	explicit circle(double r) : radius(r) {}
	double area(const key<K> &k) const override { return 3 * radius * radius - double(k.sum()); }
	double radius;
};

template <int K> struct store {
	using value = std::variant<long, double, std::string, std::vector<key<K>>>;
	std::map<key<K>, value> ordered;
	std::unordered_map<key<K>, std::shared_ptr<shape<K>>, hash_of<K>> hashed;
	std::multimap<std::string, std::optional<key<K>>> several;
	std::deque<std::pair<key<K>, std::unique_ptr<shape<K>>>> queue;
	std::set<std::tuple<int, std::string, key<K>>> seen;
	std::priority_queue<key<K>> best;
	std::list<std::function<long(const key<K> &)>> hooks;

	void add(const std::string &text, long n)
	{
		key<K> k;
		k.text = text;
		std::iota(k.parts.begin(), k.parts.end(), n);
		hooks.push_back([n, this](const key<K> &x) { return x.sum() * n + long(ordered.size()); });
		if (n % 2)
			hashed[k] = std::make_shared<square<K>>(double(n));
		else
			hashed.emplace(k, std::make_shared<circle<K>>(double(n)));
		several.emplace(text, n % 3 ? std::optional<key<K>>(k) : std::nullopt);
		queue.emplace_back(k, std::make_unique<square<K>>(double(n)));
		seen.emplace(int(n), text, k);
		best.push(k);
		switch (n % 4) {
		case 0: ordered[k] = n; break;
		case 1: ordered[k] = double(n); break;
		case 2: ordered[k] = text; break;
		default: ordered[k] = std::vector<key<K>>(size_t(n % 7), k);
		}
	}

	double total() const
	{
		double sum = 0;
		for (const auto &[k, v] : ordered)
			sum += std::visit(
				[&k = k](const auto &x) -> double {
					using type = std::decay_t<decltype(x)>;
					if constexpr (std::is_arithmetic_v<type>)
						return double(x) + double(k.sum());
					else
						return double(x.size());
				},
				v);
		for (const auto &entry : hashed)
			sum += entry.second->area(entry.first);
		for (const auto &hook : hooks)
			sum += double(hook(ordered.begin()->first));
		return sum;
	}

	std::string report()
	{
		std::vector<key<K>> keys;
		std::transform(ordered.begin(), ordered.end(), std::back_inserter(keys), [](auto &e) { return e.first; });
		std::sort(keys.begin(), keys.end(), [](auto &a, auto &b) { return b < a; });
		std::stable_sort(keys.begin(), keys.end(), [](auto &a, auto &b) { return a.sum() < b.sum(); });
		std::partial_sort(keys.begin(), keys.begin() + long(keys.size() / 2), keys.end());
		keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
		std::ostringstream out;
		for (const auto &k : keys)
			out << std::setw(K + 4) << k.text << ' ' << std::hex << k.sum() << '\n';
		while (!best.empty()) {
			out << best.top().text;
			best.pop();
		}
		return out.str();
	}
};

template <int K> long words(const std::string &text, store<K> &into)
{
	static const std::regex word("([a-z]+)([0-9]*)(?:_(@N@|" + std::to_string(K) + "))?");
	long n = 0;
	for (std::sregex_iterator it(text.begin(), text.end(), word), end; it != end; ++it)
		into.add((*it)[1].str(), ++n);
	return n;
}

template <int K> double work(const std::string &text)
{
	store<K> s;
	std::mutex lock;
	words<K>(text, s);
	auto later = std::async(std::launch::deferred, [&] {
		std::lock_guard<std::mutex> guard(lock);
		return s.total() + double(std::filesystem::path(s.report()).filename().string().size());
	});
	return later.get();
}

template <int... K> double all(const std::string &text, std::integer_sequence<int, K...>)
{
	return (work<K + @N@ * 16>(text) + ...);
}

} // namespace unit@N@

double run_unit@N@(const std::string &text)
{
	try {
		return unit@N@::all(text, std::make_integer_sequence<int, @KEYS@>());
	} catch (const std::exception &e) {
		std::cerr << "unit @N@: " << e.what() << std::endl;
		return 0;
	}
}
"""

KEYS = 6


def unit(n):
    includes = "".join(f"#include <{header}>\n" for header in HEADERS)
    return includes + UNIT.replace("@N@", str(n)).replace("@KEYS@", str(KEYS))


def main_unit(units):
    lines = ["#include <iostream>", "#include <string>"]
    lines += [f"double run_unit{n}(const std::string &);" for n in range(units)]
    calls = " + ".join(f"run_unit{n}(text)" for n in range(units))
    lines += ["int main()", "{", '\tstd::string text = "one two22 three3_1";']
    lines += [f"\tstd::cout << {calls} << std::endl;", "}"]
    return "\n".join(lines) + "\n"


def make(directory, units=UNITS):
    """The program's path. Units are compiled on all processors; sources and objects are removed afterwards."""
    program = directory / f"bigcxx-{units}"
    if program.exists():
        return program
    cxx = os.environ.get("CXX", "g++")
    work = directory / "bigcxx.tmp"
    work.mkdir(parents=True, exist_ok=True)
    sources = {f"unit{n}": unit(n) for n in range(units)} | {"main": main_unit(units)}

    def compile(name):
        source, object = work / f"{name}.cc", work / f"{name}.o"
        source.write_text(sources[name])
        if not object.exists():
            subprocess.run([cxx, *FLAGS, "-c", "-o", f"{object}.tmp", source], check=True)
            os.rename(f"{object}.tmp", object)
        return object

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        objects = list(pool.map(compile, sources))
    subprocess.run([cxx, "-pthread", "-o", f"{program}.tmp", *objects], check=True)
    os.rename(f"{program}.tmp", program)
    for file in work.iterdir():
        file.unlink()
    work.rmdir()
    return program


if __name__ == "__main__":
    print(make(Path(sys.argv[1]), *map(int, sys.argv[2:3])))
