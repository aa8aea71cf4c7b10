import Conflux

/// Shows a poll, as code of the main actor.
@MainActor
public final class PollScreen {
    /// The text on the screen.
    public private(set) var text = ""

    /// Shows a poll now, and whenever it changes.
    public init(_ poll: ModelStore<Poll>) {
        poll.changed(\.summary).observe(duringScopeOf: self) { [weak self] summary in
            self?.text = summary
        }
    }
}
