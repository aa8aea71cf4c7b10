/// Parameters that exclude each other: `--data DIR | --memory`.
///
/// A parameter counts if it is given on the command line. A variable is for every command, and excludes nothing.
public struct ExclusiveGroup: Sendable {
    let members: [Parameter]
    let isRequired: Bool

    /// Of these parameters at most one may be given.
    public static func atMostOne(_ keys: any ParameterKey...) -> ExclusiveGroup {
        ExclusiveGroup(keys, isRequired: false)
    }

    /// Of these parameters exactly one must be given.
    public static func exactlyOne(_ keys: any ParameterKey...) -> ExclusiveGroup {
        ExclusiveGroup(keys, isRequired: true)
    }

    private init(_ keys: [any ParameterKey], isRequired: Bool) {
        precondition(keys.count > 1, "a group needs two parameters to exclude each other")
        members = keys.map(\.parameter)
        self.isRequired = isRequired
        for member in members {
            precondition(
                !member.presence.isRequired, "\(member.name) can't be required and exclusive")
        }
    }
}
