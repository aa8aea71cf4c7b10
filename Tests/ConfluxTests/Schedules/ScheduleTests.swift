import Conflux
import ConfluxVocabulary
import Testing

/// A schedule as a value.
struct ScheduleTests {
    private let now = ActionContext(timestamp: Timestamp(seconds: 100))

    @Test func `a full schedule takes no further key, and says what to do`() {
        var schedule = Schedule<Int>()
        for number in 0..<Schedule<Int>.countMax {
            schedule.set(number, after: .seconds(1), key: "\(number)", in: now)
        }
        #expect(schedule.items.map(\.action) == Array(0..<Schedule<Int>.countMax))
        #expect(schedule.isFull)
        let full = schedule
        var isSet = schedule.set(-1, after: .zero, key: "further", in: now)
        #expect(!isSet)
        #expect(schedule == full)
        #expect {
            try schedule.requireRoom()
        } throws: {
            guard let error = $0 as? StoreError else { return false }
            return error.code == .scheduleFull && error.message.contains("1024 items")
        }
        // What has the key is replaced.
        isSet = schedule.set(-1, after: .zero, key: "7", in: now)
        #expect(
            isSet && schedule.items.count == Schedule<Int>.countMax
                && schedule.items[0].action == -1)
        let areCancelled = [schedule.cancel("7"), schedule.cancel("7")]
        #expect(areCancelled == [true, false])
        #expect(throws: Never.self) { try schedule.requireRoom() }
        #expect(throws: StoreError.self) { try schedule.requireRoom(for: 2) }
        isSet = schedule.set(-2, at: Timestamp(0), key: "further")
        #expect(isSet && schedule.nextDue == Timestamp(0))
    }

    @Test func `an action that finds the schedule full is refused`() {
        var log = HallLog()
        for seat in 0..<Schedule<Hall.Action>.countMax {
            #expect(log.append(.hold(seat, seconds: 30), at: 0) == nil)
        }
        let refusal = log.append(.hold(-1, seconds: 30), at: 1) as? StoreError
        #expect(refusal?.code == .scheduleFull && !log.hall.held.contains(-1))
        // All of them fire with one entry.
        #expect(log.append(.hold(-1, seconds: 30), at: 30) == nil)
        #expect(log.hall.held == [-1])
    }

    @Test func `times out of range become the nearest ones`() {
        var schedule = Schedule<Int>()
        schedule.set(0, after: .seconds(-5), key: "past", in: now)
        schedule.set(0, after: .seconds(Int64.max), key: "future", in: now)
        schedule.set(0, at: Timestamp(.max), every: .zero, key: "often")
        schedule.set(0, at: Timestamp(.min), every: .seconds(Int64.max), key: "rarely")
        #expect(schedule["past"]?.due == now.timestamp)
        #expect(schedule["future"]?.due == now.timestamp + Schedule<Int>.spanMax)
        #expect(schedule["often"]?.interval == .milliseconds(10))
        #expect(schedule["rarely"]?.interval == Schedule<Int>.spanMax)
        #expect(schedule["nothing"] == nil)
    }

    @Test func `a schedule is decoded as it was encoded`() throws {
        var schedule = Schedule<String>()
        schedule.set("b", at: Timestamp(2), every: .milliseconds(15), key: "later")
        schedule.set("c", at: Timestamp(2), key: "behind")
        schedule.set("a", at: Timestamp(1), key: "first")
        let bytes = try CanonicalCoder().encode(schedule)
        let decoded = try CanonicalCoder().decode(Schedule<String>.self, from: bytes)
        #expect(decoded == schedule)
        #expect(decoded.items.map(\.action) == ["a", "b", "c"])
        #expect(decoded["later"]?.interval == .milliseconds(15))
        #expect(try CanonicalCoder().encode(decoded) == bytes)
    }

    @Test(arguments: [
        #"[{"action":1,"due":2,"key":"a"},{"action":1,"due":1,"key":"b"}]"#,
        #"[{"action":1,"due":1,"key":"a"},{"action":1,"due":1,"key":"a"}]"#,
        #"[{"action":1,"due":1,"interval":0,"key":"a"}]"#,
    ])
    func `what is no schedule is not decoded`(text: String) {
        #expect(throws: (any Error).self) {
            try CanonicalCoder().decode(Schedule<Int>.self, from: Array(text.utf8))
        }
    }
}
