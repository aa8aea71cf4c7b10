/// Makes a type a ``CompactCodable``, with the coding that you would write by hand.
///
/// ```swift
/// @CompactAction
/// enum Action: Codable, Sendable {
///     case stop
///     case go(speed: Int, to: String, via: String? = nil)
/// }
/// ```
///
/// The type is a struct or an enum that leaves its `Codable` to the compiler: without `CodingKeys`, `init(from:)` or
/// `encode(to:)` of its own, and not generic. A field is a `Bool`, a number, a `String`, a `Data`, a `Date`, a `UUID`, another
/// type with `@CompactAction`, an array of these, or an optional one. An enum may have raw values. The compiler says which field
/// has another type: then leave the macro out, and `Codable` does the work.
///
/// The bytes are those of `Codable`, so you can add or remove the macro at any time, also in a state that is in use. What you
/// may change in such a type is the same with the macro and without it.
@attached(member, names: named(write), named(init))
@attached(extension, conformances: CompactCodable, names: named(write), named(init))
public macro CompactAction() = #externalMacro(module: "ConfluxMacros", type: "CompactAction")
