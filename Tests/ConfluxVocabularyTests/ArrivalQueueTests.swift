import ConfluxVocabulary
import Testing

@Suite struct ArrivalQueueTests {
    @Test func `an arrival queue keeps its order when elements leave`() {
        var random = SystemRandomNumberGenerator()
        let seed = random.next()
        var generator = Generator(state: seed)
        var queue = ArrivalQueue<Int>()
        var model: [Int] = []
        for number in 0..<2_000 {
            if model.isEmpty || Int.random(in: 0..<5, using: &generator) < 3 {
                queue.append(number)
                model.append(number)
            } else {
                let place = Int.random(in: 0..<model.count, using: &generator)
                let element =
                    [model[0], model[model.count - 1], model[place]]
                    .randomElement(using: &generator) ?? 0
                queue.remove(element)
                model.removeAll { $0 == element }
                #expect(!queue.contains(element), "seed \(seed)")
            }
            #expect(queue.first == model.first, "seed \(seed)")
            #expect(queue.count == model.count, "seed \(seed)")
        }
        queue.remove(-1)
        for element in model {
            #expect(queue.first == element, "seed \(seed)")
            queue.remove(element)
        }
        #expect(queue.first == nil && queue.count == 0)
        queue.append(1)
        #expect(queue.first == 1)
    }
}

private struct Generator: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return state ^ state >> 29
    }
}
