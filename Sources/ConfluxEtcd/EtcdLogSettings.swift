import ConfluxLog

/// The settings of a log on etcd. Each value is bounded; opening the log checks it.
public struct EtcdLogSettings: Sendable, Hashable {
    /// The address of the log. Its owner compacts the history of all keys in this etcd, including those of other
    /// programs. Give programs that need history an etcd of their own.
    public var address: EtcdAddress
    /// How connections are encrypted, if the address begins with `etcds://`.
    public var security = EtcdSecurity()
    /// The user and the password; nil if etcd's authentication is not enabled.
    public var credentials: EtcdCredentials?

    /// How large etcd's file may become, 1 MiB to 1 TiB: the value of its members' `--quota-backend-bytes`. The last
    /// eighth is a reserve: the sequencer then admits no actions until checkpoints and truncation have made room.
    /// Members of etcd 3.6 or later report the value, and the lower one counts.
    public var quotaBytes = 2 << 30

    /// How long to wait for one member's answer, 100 ms to 60 s, before another one is asked.
    public var answerMax = Duration.seconds(2)

    /// How long a call is retried, `answerMax` to 600 s. After that the outcome is unknown, or the log failed.
    public var callMax = Duration.seconds(6)

    /// A substitute for etcd; nil for the one at the address.
    package var imitation: EtcdImitation?

    /// Makes the default settings.
    ///
    /// - Parameter address: The address of the log.
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
