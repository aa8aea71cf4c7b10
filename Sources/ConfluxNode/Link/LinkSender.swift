import Synchronization

/// Lets threads that dispatch reach the link, once it exists and while it runs.
final class LinkSender: Sendable {
    private let target = Mutex<LinkThread?>(nil)

    var link: LinkThread? {
        get { target.withLock { $0 } }
        set { target.withLock { $0 = newValue } }
    }

    /// See ``LinkThread/sendAtOnce()``.
    func send() { link?.sendAtOnce() }
}
