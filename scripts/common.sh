# SPDX-License-Identifier: Apache-2.0
# Sourced by the build scripts (POSIX sh and bash). Defines the cache folder and a private apt.

ASB_TOP=${ASB_TOP:-$(cd "$(dirname "$0")/.." && pwd)}

die()
{
	printf '%s: error: %s\n' "${0##*/}" "$*" >&2
	exit 1
}

say()
{
	printf '  %-8s %s\n' "$1" "$2" >&2
}

# The folder of everything that is slow to make. make, configure and kbuild cannot live with
# white space in a path, so such a folder is refused instead of failing half-way.
asb_cache()
{
	ASB_CACHE=${ASB_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/agent-sandbox-os}
	case $ASB_CACHE in
	*[[:space:]]*)
		die "the cache folder '$ASB_CACHE' has white space in its name; set ASB_CACHE to another one" ;;
	/*) ;;
	*) die "ASB_CACHE must be an absolute path, not '$ASB_CACHE'" ;;
	esac
	mkdir -p "$ASB_CACHE"
}

# private_apt DIR: an apt with state of its own under DIR, so that source packages and arm64
# packages can be fetched without touching the machine's configuration. It has the same mirrors,
# keys and proxies as the machine: only the types and the architectures are widened.
private_apt()
{
	mkdir -p "$1/parts" "$1/lists/partial" "$1/cache/archives/partial"
	for f in /etc/apt/sources.list.d/*.sources; do
		[ -f "$f" ] || continue
		sed -E '/^Architectures:/d; s/^Types:.*/Types: deb deb-src/' "$f" \
			>"$1/parts/$(basename "$f")"
	done
	for f in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
		[ -f "$f" ] || continue
		sed -nE 's/^[[:space:]]*deb[[:space:]]+(\[[^]]*\][[:space:]]+)?(.*)/deb \1\2\ndeb-src \1\2/p' \
			"$f" | sed -E 's/arch=[^] ]*//' >"$1/parts/$(basename "$f" .list).list"
	done
	cat >"$1/apt.conf" <<-END
	Dir::Etc::SourceList "/dev/null";
	Dir::Etc::SourceParts "$1/parts";
	Dir::State::Lists "$1/lists";
	Dir::Cache "$1/cache";
	Dir::Cache::pkgcache "";
	Dir::Cache::srcpkgcache "";
	APT::Architectures { "amd64"; "arm64"; };
	APT::Sandbox::User "root";
	Acquire::Languages "none";
	Acquire::Retries "3";
	END
	APT_CONFIG=$1/apt.conf
	export APT_CONFIG
	apt-get -qq update || die "apt cannot read its package lists; check the network and /etc/apt"
}

# debian_mirrors SUITE: source lines of this machine's Debian mirrors for SUITE (with its updates and security
# archives), and of nothing else the machine may use. Needs private_apt.
debian_mirrors()
{
	apt-get indextargets --format \
		'$(ORIGIN)|$(REPO_URI)|$(RELEASE)|$(COMPONENT)|$(CREATED_BY)|$(ARCHITECTURE)' |
		awk -F'|' -v s="$1" '
			$1 == "Debian" && $5 == "Packages" && $6 == "amd64" && index($3, s) == 1 {
				k = $2 " " $3
				if (!(k in c))
					order[++n] = k
				c[k] = c[k] " " $4
			}
			END {
				for (i = 1; i <= n; i++)
					print "deb " order[i] c[order[i]]
				exit n == 0
			}' || die "this machine's apt has no Debian mirror for $1"
}
