import Synchronization

/// Lets threads that dispatch or look reach the node's threads while these run.
final class LinkSender: Sendable {
    private let target = Mutex<LinkThread?>(nil)

    var link: LinkThread? {
        get { target.withLock { $0 } }
        set { target.withLock { $0 = newValue } }
    }

    /// See ``LinkThread/sendAtOnce()``.
    func send() { link?.sendAtOnce() }

    /// See ``ApplyThread/lookAtOnce(_:)``.
    func look<Value>(_ body: (Applier) -> Value) -> Value? { link?.apply.lookAtOnce(body) }
}
