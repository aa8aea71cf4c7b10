import Testing

@testable import ConfluxSequencer

struct ReadPaceTests {
    @Test func `while actions are committed, so many bytes a second are read at most`() {
        let pace = ReadPace()
        pace.appended(at: .seconds(10))
        #expect(pace.pause(after: ReadPace.bytesPerSecondMax, at: .seconds(10)) == .seconds(1))
        #expect(pace.pause(after: 0, at: .seconds(10)) == .zero)
        let soon = Duration.seconds(10) + ReadPace.appendSpan - .nanoseconds(1)
        #expect(pace.pause(after: 256 << 10, at: soon) == .seconds(1) / 1_024)
    }

    @Test func `readers do not pause without commits`() {
        let pace = ReadPace()
        #expect(pace.pause(after: 1 << 30, at: .zero) == .zero)
        pace.appended(at: .seconds(10))
        let later = Duration.seconds(10) + ReadPace.appendSpan
        #expect(pace.pause(after: 1 << 30, at: later) == .zero)
    }
}
