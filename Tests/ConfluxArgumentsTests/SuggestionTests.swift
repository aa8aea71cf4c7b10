import Testing

@testable import ConfluxArguments

struct SuggestionTests {
    @Test(arguments: [
        ("", "", 0), ("a", "", 1), ("", "abc", 3), ("abc", "abc", 0), ("abc", "acb", 1),
        ("kitten", "sitting", 3), ("fsnyc", "fsync", 1), ("ca", "abc", 3),
    ])
    func `an edit inserts, drops, replaces or swaps`(left: String, right: String, distance: Int) {
        #expect(editDistance(Array(left), Array(right)) == distance)
        #expect(editDistance(Array(right), Array(left)) == distance)
    }

    @Test func `the nearest word is suggested, whatever its case`() {
        let words = ["status", "store", "observe"]
        #expect(nearest(to: "stroe", in: words) == "store")
        #expect(nearest(to: "OBSERV", in: words) == "observe")
    }

    @Test func `a distant word is not suggested`() {
        #expect(nearest(to: "zzzzz", in: ["store", "log"]) == nil)
        #expect(nearest(to: "lxx", in: ["log"]) == nil)
        #expect(nearest(to: "x", in: ["a"]) == nil)
        #expect(nearest(to: String(repeating: "a", count: 1000), in: ["aaa"]) == nil)
    }

    @Test func `an unambiguous prefix of a word is enough`() {
        #expect(nearest(to: "seq", in: ["sequencer", "worker"]) == "sequencer")
        #expect(nearest(to: "s", in: ["sequencer"]) == nil)
        #expect(nearest(to: "comp", in: ["completions", "compacting"]) == nil)
    }
}
