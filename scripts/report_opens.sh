#!/usr/bin/env bash
# Makes a report of a tiny reproduction and opens it in Chromium without a screen: it must be complete,
# say nothing to the console, load nothing, and every plot must have a size. With a directory, keeps
# pictures of the page as a desk and a telephone show it there.
#
# Usage: scripts/report_opens.sh [DIR] [FIGURE...]      (needs chromium; default: all figures)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

pictures=${1:-}
shift || true
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
if [ -z "$browser" ]; then
    echo 'report_opens: there is no chromium; nothing was checked' >&2
    exit 3
fi
room=$(mktemp -d)
trap 'rm -rf "$room"' EXIT

# NVCARACAL_LAB names a program that is built already.
read -ra program <<<"${NVCARACAL_LAB:-cargo run --quiet -p nvcaracal-lab --}"
"${program[@]}" reproduce "${@:-all}" --scale smoke --out "$room/report" --no-progress

open_page() {
    # A page that waits for something must not hold up whoever waits for this script.
    timeout 120 "$browser" --headless --no-sandbox --disable-gpu --disable-quic --no-first-run \
        --disable-background-networking --disable-component-update --disable-sync \
        --hide-scrollbars --user-data-dir="$room/profile" --enable-logging=stderr --v=0 "$@"
}

# Asks the page itself, in a copy: a script writes what it finds into the document.
page=$room/report/report.html
cat >"$room/ask.html" <<'SCRIPT'
<script>
addEventListener('error', e => document.body.dataset.error = e.message);
addEventListener('load', () => {
  const plots = [...document.querySelectorAll('svg')];
  const flat = plots.filter(p => !(p.getBoundingClientRect().width > 100
                                   && p.getBoundingClientRect().height > 30));
  document.body.dataset.plots = plots.length;
  document.body.dataset.flat = flat.length;
  document.body.dataset.loaded = performance.getEntriesByType('resource').length;
  document.body.dataset.wide = document.documentElement.scrollWidth > innerWidth ? 1 : 0;
});
</script>
SCRIPT
cat "$page" "$room/ask.html" >"$room/asked.html"

for width in 1000 390; do
    open_page --window-size="$width,1200" --dump-dom "file://$room/asked.html" \
        >"$room/dom" 2>"$room/console"
    if grep -E 'CONSOLE' "$room/console"; then
        echo "report_opens: the console is not silent at width $width" >&2
        exit 1
    fi
    body=$(grep -oE '<body[^>]*>' "$room/dom")
    if ! grep -q 'data-plots="[1-9]' <<<"$body" || ! grep -q 'data-flat="0"' <<<"$body" \
        || ! grep -q 'data-loaded="0"' <<<"$body" || ! grep -q 'data-wide="0"' <<<"$body" \
        || grep -q 'data-error' <<<"$body"; then
        echo "report_opens: at width $width: $body" >&2
        exit 1
    fi
    if [ -n "$pictures" ]; then
        mkdir -p "$pictures"
        open_page --window-size="$width,${HEIGHT:-9000}" --screenshot="$room/$width.png" \
            "file://$page" 2>/dev/null
        mv "$room/$width.png" "$pictures/report-$width.png"
    fi
done
echo 'report_opens: all is well'
