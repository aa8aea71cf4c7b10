import ConfluxVocabulary

@testable import ConfluxProtocol

extension RandomMessages {
    mutating func timerStatus() -> TimerStatus {
        TimerStatus(
            number: sequence(), owner: optional { $0.name() }, key: optional { $0.text() },
            targets: list { $0.target() }, due: Timestamp(Int64(bitPattern: random.next())),
            interval: optional { $0.duration() })
    }
}
