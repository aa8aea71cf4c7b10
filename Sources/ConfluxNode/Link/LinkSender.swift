import Synchronization

/// Has threads that dispatch reach the link, once there is one and for as long as it runs.
final class LinkSender: Sendable {
    private let target = Mutex<LinkThread?>(nil)

    var link: LinkThread? {
        get { target.withLock { $0 } }
        set { target.withLock { $0 = newValue } }
    }

    /// See ``LinkThread/sendAtOnce()``.
    func send() { link?.sendAtOnce() }
}
