import ConfluxVocabulary
import Foundation
import Testing

@Suite struct TreeMapTests {
    @Test(arguments: [8, 400, 100_000])
    func `a tree map behaves like a dictionary, and its copies don't change`(keys: Int) {
        let seed = UInt64.random(in: 0 ..< .max)
        var random = SplitMix64(seed: seed)
        var (map, model) = (TreeMap<Int, Int>(), [Int: Int]())
        var copies: [(TreeMap<Int, Int>, [Int: Int])] = []
        for step in 0..<6_000 {
            let key = Int.random(in: 0..<keys, using: &random)
            // The map grows, then shrinks, then grows again.
            let removes = (step / 1_500).isMultiple(of: 2) ? 3 : 7
            switch Int.random(in: 0..<10, using: &random) {
            case 0..<removes:
                #expect(map.removeValue(forKey: key) == model.removeValue(forKey: key))
            case 9:
                map[key, default: 1] += step
                model[key, default: 1] += step
            default:
                #expect(map.updateValue(step, forKey: key) == model.updateValue(step, forKey: key))
            }
            #expect(map[key] == model[key] && map.count == model.count, "seed \(seed)")
            if step.isMultiple(of: 600) { copies.append((map, model)) }
        }
        for (map, model) in copies + [(map, model)] {
            let sorted = model.sorted { $0.key < $1.key }
            #expect(map.elementsEqual(sorted) { $0 == $1 }, "seed \(seed)")
            #expect(map.first?.key == sorted.first?.key && map.last?.key == sorted.last?.key)
            for key in [-1, keys / 2, keys] + sorted.prefix(3).map(\.key) {
                let behind = sorted.filter { $0.key > key }
                #expect(
                    map.elements(behind: key).elementsEqual(behind) { $0 == $1 }, "seed \(seed)")
            }
        }
        for key in model.keys { map[key] = nil }
        #expect(map.isEmpty && map.first == nil && map.last == nil && map == [:])
    }

    @Test(arguments: [0, 1, 48, 49, 64, 65, 5_000, 20_000])
    func `elements in any order make the same map, which can be changed`(count: Int) {
        let ascending = TreeMap((0..<count).map { ($0, "\($0)") }) { _, last in last }
        let shuffled = TreeMap((0..<count).shuffled().map { ($0, "\($0)") }) { _, last in last }
        #expect(ascending == shuffled && ascending.count == count)
        #expect(ascending.hashValue == shuffled.hashValue)
        #expect(Array(ascending.keys) == Array(0..<count))
        #expect(ascending.values.elementsEqual((0..<count).map { "\($0)" }))
        var changed = ascending
        for key in 0..<min(count, 1_000) {
            changed[-key - 1] = "new"
            changed[key] = nil
        }
        #expect(changed.count == count && Array(ascending.keys) == Array(0..<count))
        #expect(changed != ascending || count == 0)
    }

    @Test(arguments: [0, 5, 300, 5_000])
    func `the difference of two maps is that of two dictionaries`(count: Int) {
        let seed = UInt64.random(in: 0 ..< .max)
        var random = SplitMix64(seed: seed)
        let old = TreeMap((0..<count).map { ($0 * 2, $0) }) { _, last in last }
        var new = old
        for changes in [0, 1, 3, 40, 2_000] {
            for _ in 0..<changes {
                let key = Int.random(in: -5..<count * 2 + 5, using: &random)
                new[key] = Bool.random(using: &random) ? Int.random(in: 0..<9, using: &random) : nil
            }
            let difference = new.difference(from: old)
            let (before, after) = (
                Dictionary(uniqueKeysWithValues: old.map { ($0.key, $0.value) }),
                Dictionary(uniqueKeysWithValues: new.map { ($0.key, $0.value) })
            )
            #expect(
                difference.added.elementsEqual(
                    after.filter { before[$0.key] == nil }.sorted { $0.key < $1.key }, by: ==),
                "seed \(seed)")
            #expect(
                difference.removed.elementsEqual(
                    before.filter { after[$0.key] == nil }.sorted { $0.key < $1.key }, by: ==),
                "seed \(seed)")
            #expect(
                difference.changed.elementsEqual(
                    after.filter { before[$0.key] != nil && before[$0.key] != $0.value }
                        .sorted { $0.key < $1.key }, by: ==),
                "seed \(seed)")
            #expect(difference.isEmpty == (new == old))
        }
        #expect(new.difference(from: [:]).added == new)
        #expect(TreeMap().difference(from: new).removed == new)
    }

    /// Counts how often values are compared.
    private struct Counted: Equatable {
        nonisolated(unsafe) static var comparisons = 0  // One test, on one thread.
        let value: Int

        static func == (one: Counted, other: Counted) -> Bool {
            comparisons += 1
            return one.value == other.value
        }
    }

    @Test func `what two maps share is not compared`() {
        let old = TreeMap((0..<100_000).map { ($0, Counted(value: $0)) }) { _, last in last }
        var new = old
        for key in [7, 50_000, 99_999] { new[key] = Counted(value: 0) }
        new[-1] = Counted(value: 1)
        new[60_000] = nil
        let difference = new.difference(from: old)
        #expect(difference.changed.count == 3 && difference.added.count == 1)
        #expect(Array(difference.removed.keys) == [60_000])
        // At most four leaves have something else.
        #expect(Counted.comparisons <= 4 * 64)
    }

    @Test func `values of equal keys are combined`() {
        let map = TreeMap([("b", 1), ("a", 2), ("b", 3), ("c", 4), ("a", 5)]) { $0 * 10 + $1 }
        #expect(map == ["a": 25, "b": 13, "c": 4])
        #expect("\(map)" == #"["a": 25, "b": 13, "c": 4]"#)
    }

    @Test func `a tree map is encoded like a dictionary`() throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        let texts = ["b": [1], "a": [2, 3], "ä": []]
        let numbers = [3: "c", -1: "a"]
        #expect(
            try encoder.encode(TreeMap(texts.map { ($0, $1) }) { $1 }) == encoder.encode(texts))
        #expect(
            try encoder.encode(TreeMap(numbers.map { ($0, $1) }) { $1 }) == encoder.encode(numbers))
        let map = try JSONDecoder().decode(
            TreeMap<String, [Int]>.self, from: encoder.encode(texts))
        #expect(Dictionary(uniqueKeysWithValues: map.map { ($0.key, $0.value) }) == texts)
        #expect(
            try JSONDecoder().decode(TreeMap<Int, String>.self, from: encoder.encode(numbers))
                == [-1: "a", 3: "c"])
    }

    @Test func `keys that are not strings are encoded as a list of keys and values`() throws {
        let moments: TreeMap<Timestamp, Int> = [Timestamp(2): 20, Timestamp(1): 10]
        let data = try JSONEncoder().encode(moments)
        #expect(
            try JSONDecoder().decode([Timestamp: Int].self, from: data) == [
                Timestamp(1): 10, Timestamp(2): 20,
            ])
        #expect(try JSONDecoder().decode(TreeMap<Timestamp, Int>.self, from: data) == moments)
    }

    @Test func `data that is not a map is refused`() {
        for text in ["[1]", #"{"x":1}"#, "[]", "3"] {
            #expect(throws: DecodingError.self) {
                try JSONDecoder().decode(TreeMap<Int, Int>.self, from: Data(text.utf8))
            }
        }
        #expect(throws: DecodingError.self) {
            try JSONDecoder().decode(TreeMap<Double, Int>.self, from: Data("[1.5,2,3.5]".utf8))
        }
    }
}
