import ConfluxVocabulary
import Testing

@Suite struct `A heap` {
    @Test func `gives back its elements in order, whatever order they came in`() {
        var random = SplitMix64(seed: 7)
        for count in [0, 1, 2, 3, 100] {
            let numbers = (0..<count).map { _ in random.next() % 50 }
            var heap = Heap<UInt64>()
            for number in numbers { heap.insert(number) }
            #expect(heap.count == count && heap.first == numbers.min())
            var taken: [UInt64] = []
            while let number = heap.popFirst() { taken.append(number) }
            #expect(taken == numbers.sorted())
        }
    }

    @Test func `keeps its order when elements are removed`() {
        var heap = Heap<Int>()
        for number in [5, 1, 4, 2, 3, 6] { heap.insert(number) }
        heap.removeAll { $0 % 2 == 0 }
        heap.insert(0)
        #expect((0..<4).map { _ in heap.popFirst() } == [0, 1, 3, 5])
        #expect(heap.popFirst() == nil)
    }
}

@Suite struct `A binary search` {
    @Test func `finds the first element for which the condition holds`() {
        for count in 0..<20 {
            let numbers = Array(0..<count)
            for bound in 0...count {
                #expect(numbers.partitioningIndex { $0 >= bound } == bound)
            }
            #expect(numbers.dropFirst(count / 2).partitioningIndex { _ in true } == count / 2)
        }
    }
}
