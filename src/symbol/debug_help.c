/* SPDX-License-Identifier: MIT */
#include "symbol/debug_help.h"

#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "target/rootfile.h"

/* In order of preference: a derived distribution names itself first, then what it is like. */
static const struct {
	const char *id;
	const char *help;
} distributions[] = {
	{"ubuntu", "install its -dbgsym package, or set DEBUGINFOD_URLS=https://debuginfod.ubuntu.com"},
	{"debian", "install its -dbgsym or -dbg package, or set DEBUGINFOD_URLS=https://debuginfod.debian.net"},
	{"fedora", "run dnf debuginfo-install, or set DEBUGINFOD_URLS=https://debuginfod.fedoraproject.org/"},
	{"suse", "install its -debuginfo package, or set DEBUGINFOD_URLS=https://debuginfod.opensuse.org/"},
	{"arch", "set DEBUGINFOD_URLS=https://debuginfod.archlinux.org"},
	{"alpine", "install its -dbg package"},
};

static const char elsewhere[] =
	"install its debug package, or set DEBUGINFOD_URLS (https://debuginfod.elfutils.org/ has many distributions)";

/* Whether a line ID=… or ID_LIKE=… names the distribution: "opensuse-leap" names suse. */
static bool names(const char *text, const char *id)
{
	for (const char *line = text; line; line = strchr(line, '\n')) {
		size_t len;

		line += *line == '\n';
		len = strcspn(line, "\n");
		if (strncmp(line, "ID=", 3) != 0 && strncmp(line, "ID_LIKE=", 8) != 0)
			continue;
		if (memmem(line, len, id, strlen(id)))
			return true;
	}
	return false;
}

/* Whether packages bring files there; programs that were built on the machine are elsewhere. */
static bool is_of_a_package(const char *path)
{
	static const char *const places[] = {"/usr/", "/lib", "/bin/", "/sbin/", "/nix/", "/gnu/", "/snap/"};

	if (strncmp(path, "/usr/local/", strlen("/usr/local/")) == 0)
		return false;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		if (strncmp(path, places[i], strlen(places[i])) == 0)
			return true;
	return false;
}

const char *debug_help(int root_fd, const char *path)
{
	_cleanup_close_ int fd = -1;
	char text[4096];
	ssize_t len;

	if (!is_of_a_package(path))
		return "build it with -g, or keep its debug file beside it";
	fd = rootfile_open(root_fd, "/etc/os-release", NULL);
	if (fd < 0)
		fd = rootfile_open(root_fd, "/usr/lib/os-release", NULL);
	len = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (len < 0)
		return elsewhere;
	text[len] = '\0';
	for (size_t i = 0; i < sizeof(distributions) / sizeof(distributions[0]); i++)
		if (names(text, distributions[i].id))
			return distributions[i].help;
	return elsewhere;
}
