/// What happened, one line for each event, for debugging a seed.
final class Trace {
    let isOn: Bool
    private(set) var lines: [String] = []

    init(isOn: Bool) {
        self.isOn = isOn
    }

    func note(_ now: Duration, _ text: @autoclosure () -> String) {
        guard isOn else { return }
        let time = now.text
        lines.append(String(repeating: " ", count: max(0, 9 - time.count)) + time + "  " + text())
    }
}
