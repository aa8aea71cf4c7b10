/// The word that was probably meant; nil if none is close.
///
/// A candidate of up to four letters is close if it is at most one edit away; of up to eight
/// letters, two; of more, three. An edit inserts, drops or replaces a letter, or swaps two
/// neighbours. Of equally close candidates, the first is chosen. If none is close, the result is the
/// only candidate that begins with the word, if the word has at least two letters.
///
/// Complexity: the product of both lengths for each word. For more than 64 letters, nothing is
/// suggested.
package func nearest(to word: String, in candidates: [String]) -> String? {
    let letters = Array(word.lowercased())
    guard letters.count <= 64 else { return nil }
    var best: (word: String, distance: Int)?
    for candidate in candidates {
        let other = Array(candidate.lowercased())
        let limit = other.count <= 4 ? 1 : other.count <= 8 ? 2 : 3
        guard abs(other.count - letters.count) <= limit else { continue }
        let distance = editDistance(letters, other)
        // A word of one letter is one edit away from every other, which says nothing.
        guard distance <= limit, distance < max(letters.count, other.count) else { continue }
        if best.map({ distance < $0.distance }) ?? true { best = (candidate, distance) }
    }
    if let best { return best.word }
    let bare = letters.drop { $0 == "-" }
    guard bare.count >= 2 else { return nil }
    let longer = candidates.filter { $0.lowercased().drop { $0 == "-" }.starts(with: bare) }
    return longer.count == 1 ? longer[0] : nil
}

/// The Damerau–Levenshtein distance in its restricted form: no letter is edited twice.
func editDistance(_ left: [Character], _ right: [Character]) -> Int {
    var beforePrevious: [Int] = []
    var previous = Array(0...right.count)
    for row in 0..<left.count {
        var current = [row + 1]
        for column in 0..<right.count {
            let same = left[row] == right[column]
            var least = min(
                previous[column + 1] + 1, current[column] + 1, previous[column] + (same ? 0 : 1))
            if row > 0, column > 0, left[row] == right[column - 1],
                left[row - 1] == right[column]
            {
                least = min(least, beforePrevious[column - 1] + 1)
            }
            current.append(least)
        }
        beforePrevious = previous
        previous = current
    }
    return previous[right.count]
}
