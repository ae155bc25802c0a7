# SPDX-License-Identifier: GPL-3.0-or-later
# Sourced by the scripts: `python` becomes the first Python 3 that really starts (a launcher may be there and fail).
python=
for name in python3 python python3.13 python3.12 python3.11 python3.14 /usr/bin/python3; do
    if "$name" -c 'import sys; sys.exit(sys.version_info < (3, 8))' >/dev/null 2>&1; then
        python=$name
        break
    fi
done
if [ -z "$python" ]; then
    echo "No Python 3 was found; install Python 3.11 or newer, or set MOCAP_BLENDER to a Blender executable." >&2
    exit 1
fi
