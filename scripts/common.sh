# Shared by scripts/demo, scripts/test and scripts/bench: required packages, configuring, building. Sourced by bash.
# shellcheck shell=bash
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
script=scripts/$(basename "$0")
packages=(g++ cmake ninja-build libopenblas-openmp-dev zlib1g-dev libpcre2-dev libutf8proc-dev libpng-dev libjpeg-dev libcli11-dev libtomlplusplus-dev nlohmann-json3-dev catch2)
build_megabytes=1500  # of disk for a build, generously
options=()  # for cmake, when a build is configured
always=()  # for cmake, even if the build is configured already: each -DNAME=VALUE

# fail MESSAGE: one line, exit 1.
fail() {
  printf '%s: %s\n' "$script" "$*" >&2
  exit 1
}

# True if a package is installed. A program counts wherever it came from.
has() {
  case $1 in
    g++) command -v c++ >/dev/null ;;
    cmake) command -v cmake >/dev/null ;;
    clang) command -v clang++ >/dev/null ;;
    openmpi-bin) command -v mpirun >/dev/null ;;
    ninja-build) command -v ninja >/dev/null ;;
    python3) command -v python3 >/dev/null ;;
    *) [[ $(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null) == installed ]] ;;
  esac
}

# install_missing yes|no: installs the packages of `packages` that are missing, or says which they are.
install_missing() {
  local missing=() package as_root=() log reason
  for package in "${packages[@]}"; do
    has "$package" || missing+=("$package")
  done
  ((${#missing[@]})) || return 0
  local command="apt-get install --no-install-recommends ${missing[*]}"
  command -v apt-get >/dev/null || fail "these Debian packages, or what corresponds to them here, are missing: ${missing[*]}"
  [[ $1 == yes ]] || fail "packages are missing; install them as root: $command"
  if ((EUID != 0)); then
    command -v sudo >/dev/null || fail "packages are missing, and there is no sudo; install them as root: $command"
    as_root=(sudo)
  fi
  printf 'installing Debian packages: %s\n' "${missing[*]}"
  log=$(mktemp)
  trap 'rm -f "$log"' EXIT
  if ! { "${as_root[@]}" apt-get -q -o Acquire::Retries=2 -o Acquire::http::Timeout=20 update &&
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o Acquire::Retries=2 -o Acquire::http::Timeout=20 \
      install --no-install-recommends "${missing[@]}"; } >"$log" 2>&1 </dev/null; then
    if grep -qiE 'failed to fetch|could not resolve|unable to locate|no installation candidate' "$log"; then
      fail "the packages cannot be fetched; with a network, run this again or, as root: apt-get update && $command"
    fi
    reason=$(grep -m 1 '^E: ' "$log" || tail -n 1 "$log")
    fail "the packages could not be installed (${reason#E: }); then run this again or, as root: $command"
  fi
  rm -f "$log"
  trap - EXIT
}

# True if this machine has a CUDA device.
has_device() { [[ -e /dev/nvidia0 ]] || nvidia-smi -L >/dev/null 2>&1; }

# Options of a build for this machine only: all instruction sets take three times as long, and device code takes
# minutes.
options_of_this_machine() {
  options+=(-DISONORM_KERNELS=native)
  has_device || options+=(-DISONORM_GPU=off)
}

free_megabytes() { df -Pm "$root" | awk 'NR == 2 { print $4 }'; }

# configured DIR: true if a build has the options `always`.
configured() {
  local option
  for option in "${always[@]}"; do
    sed 's/:[A-Z]*=/=/' "$1/CMakeCache.txt" | grep -xF -e "${option#-D}" >/dev/null || return 1
  done
}

# build PRESET [TARGET]: configures the build if necessary, and builds with all cores.
build() {
  local dir=$root/build/$1 new=yes log
  cd "$root"
  # A tree that was copied or moved still has its old path.
  if [[ -e $dir/CMakeCache.txt ]]; then
    grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$root" "$dir/CMakeCache.txt" || rm -rf "$dir"
  fi
  [[ -e $dir/CMakeCache.txt && -e $dir/build.ninja ]] && new=no
  if [[ $new == yes ]]; then
    local free
    free=$(free_megabytes)
    ((free >= build_megabytes)) || fail "the disk of $root has $free MB free, the build needs $build_megabytes; make room"
    log=$(mktemp) || fail "no temporary file can be made; make room in ${TMPDIR:-/tmp}"
    if ! cmake --preset "$1" "${options[@]}" "${always[@]}" >"$log" 2>&1; then
      rm -rf "$dir"
      cat "$log" >&2
      rm -f "$log"
      fail "configuring failed, see above; nothing of it was kept"
    fi
    rm -f "$log"
  elif ! configured "$dir"; then
    cmake "${always[@]}" "$dir" >/dev/null || fail "configuring failed, see above"
  fi
  if ! cmake --build --preset "$1" --parallel "$(nproc)" ${2:+--target "$2"}; then
    local free
    free=$(free_megabytes)
    if ((free < 50)); then
      [[ $new == no ]] || rm -rf "$dir"
      fail "the disk of $root is full; make room and run this again"
    fi
    fail "building failed, see above"
  fi
}
