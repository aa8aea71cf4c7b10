import ConfluxLog

/// How a log on etcd is reached and kept. Each value is bounded; opening the log checks it.
public struct EtcdLogSettings: Sendable, Hashable {
    /// Where the log is. Its owner has this etcd give up the history of all keys as it goes, also of those of other
    /// programs: one that needs history has an etcd of its own.
    public var address: EtcdAddress
    /// How connections are encrypted; it counts where the address begins with `etcds://`.
    public var security = EtcdSecurity()
    /// Who this program is; nil where etcd's authentication is not enabled.
    public var credentials: EtcdCredentials?

    /// How large etcd's file may become, 1 MiB to 1 TiB: what its members have as `--quota-backend-bytes`. The last
    /// eighth is a reserve: a sequencer admits no actions then, until checkpoints and truncation have made
    /// room. A member of etcd 3.6 or later says it by itself, and the lower of the two counts.
    public var quotaBytes = 2 << 30

    /// How long one member may take to answer, 100 ms to 60 s, before another one is asked.
    public var answerMax = Duration.seconds(2)

    /// How long a call may take in all, `answerMax` to 600 s: until then it is tried again. Behind it the outcome is
    /// unknown, or the log failed.
    public var callMax = Duration.seconds(6)

    /// What stands for etcd; nil for the one at the address.
    package var imitation: EtcdImitation?

    /// The settings that this documentation names.
    ///
    /// - Parameter address: Where the log is.
    public init(address: EtcdAddress) {
        self.address = address
    }

    /// Checks every value against its bounds.
    ///
    /// - Throws: `invalidSetting` for the first value that lies outside.
    public func validate() throws(LogError) {
        guard (1 << 20...1 << 40).contains(quotaBytes) else {
            throw LogError(
                .invalidSetting, "quotaBytes is \(quotaBytes); it lies between 1 MiB and 1 TiB.")
        }
        guard answerMax >= .milliseconds(100), answerMax <= .seconds(60) else {
            throw LogError(
                .invalidSetting, "answerMax is \(answerMax); it lies between 100 ms and 60 s.")
        }
        guard callMax >= answerMax, callMax <= .seconds(600) else {
            throw LogError(
                .invalidSetting, "callMax is \(callMax); it lies between answerMax and 600 s.")
        }
        guard credentials == nil || address.isSecure || address.isLocal else {
            throw LogError(
                .invalidSetting,
                "A password would go to other machines unencrypted. Begin the address with etcds://, "
                    + "or leave the credentials out.")
        }
    }
}
