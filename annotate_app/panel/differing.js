// What differs between two texts, word by word: the least that must be changed in one to make it the
// other (Myers 1986, "An O(ND) Difference Algorithm").

const MOST_CHANGES = 1500; // of more, marks would cover all of both texts
const WORD = /[\p{L}\p{N}]+|[^\s\p{L}\p{N}]/gu;

function wordsOf(text) {
  return [...text.matchAll(WORD)].map(({ 0: word, index }) => ({ word, start: index, end: index + word.length }));
}

// The places [start, end] in each text that the other does not have; null where too much differs.
function differences(one, other) {
  const [before, after] = [wordsOf(one), wordsOf(other)];
  const pairs = commonPairs(before.map(({ word }) => word), after.map(({ word }) => word));
  if (pairs === null) return null;
  const kept = [new Set(pairs.map(([at]) => at)), new Set(pairs.map(([, at]) => at))];
  return [before, after].map((own, side) => placesOf(own, kept[side]));
}

// Neighbours that both differ are one place.
function placesOf(own, kept) {
  const places = [];
  own.forEach(({ start, end }, at) => {
    if (kept.has(at)) return;
    if (at > 0 && !kept.has(at - 1)) places.at(-1)[1] = end;
    else places.push([start, end]);
  });
  return places;
}

// The words that both have, in order, as pairs of places; null beyond so many changes.
function commonPairs(one, other) {
  const [n, m] = [one.length, other.length];
  const most = Math.min(n + m, MOST_CHANGES);
  const furthest = new Int32Array(2 * most + 3); // on each diagonal k: how far in `one`
  const trace = [];
  for (let d = 0; d <= most; d++) {
    trace.push(furthest.slice(most + 1 - d - 1, most + 1 + d + 2));
    for (let k = -d; k <= d; k += 2) {
      const at = most + 1 + k;
      const down = k === -d || (k !== d && furthest[at - 1] < furthest[at + 1]);
      let x = down ? furthest[at + 1] : furthest[at - 1] + 1;
      while (x < n && x - k < m && one[x] === other[x - k]) x++;
      furthest[at] = x;
      if (x >= n && x - k >= m) return walkedBack(trace, n, m);
    }
  }
  return null;
}

function walkedBack(trace, n, m) {
  const pairs = [];
  let [x, y] = [n, m];
  for (let d = trace.length - 1; d >= 0; d--) {
    const k = x - y;
    const before = (diagonal) => trace[d][diagonal + d + 1];
    const down = k === -d || (k !== d && before(k - 1) < before(k + 1));
    const fromX = d === 0 ? 0 : before(down ? k + 1 : k - 1);
    const fromY = d === 0 ? 0 : fromX - (down ? k + 1 : k - 1);
    while (x > fromX && y > fromY) pairs.push([--x, --y]);
    [x, y] = [fromX, fromY];
  }
  return pairs.reverse();
}
