/// The names that a person may have meant: those of states that the log has seen, and of stores
/// that have a name of their own. The cost of listing them does not depend on how many there are.
struct KnownNames: Sendable {
    /// The lowest names, ascending.
    private(set) var first: [String] = []
    /// How many there are.
    private(set) var count = 0
    /// The most names that are listed.
    static let shownMax = 20

    mutating func insert(_ name: String) {
        count += 1
        let index = first.firstIndex { name < $0 } ?? first.count
        guard index < Self.shownMax else { return }
        first.insert(name, at: index)
        if first.count > Self.shownMax { first.removeLast() }
    }

    /// Removes a name.
    ///
    /// - Parameters:
    ///   - name: A name that was inserted.
    ///   - next: Returns the lowest of all names above the given one. *Use*: it fills the free
    ///     place.
    mutating func remove(_ name: String, next: (String) -> String?) {
        count -= 1
        guard let index = first.firstIndex(of: name) else { return }
        first.remove(at: index)
        guard let last = first.last, count > first.count else { return }
        if let found = next(last) { first.append(found) }
    }

    /// The names as a list for a sentence, together with others that are not inserted here.
    func text(with others: [String], otherCount: Int) -> String {
        let count = count + otherCount
        guard count > 0 else { return "none yet" }
        let shown = (first + others).sorted().prefix(Self.shownMax)
        let text = shown.joined(separator: ", ")
        return count > shown.count ? "\(text) and \(count - shown.count) more" : text
    }
}
