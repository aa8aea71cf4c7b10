import ConfluxNode

/// A value that a line of JSON can have.
package protocol JSONField: Sendable {
    /// The value.
    var json: JSONValue { get }
}

/// The members of a JSON object. Those without a value are left out.
package typealias JSONFields = [String: (any JSONField)?]

extension JSONObject: JSONField {
    /// Makes an object of the members that have a value.
    package init(_ fields: JSONFields) {
        self.init()
        for case (let key, let field?) in fields { self[key] = field.json }
    }

    package var json: JSONValue { .object(self) }
}

extension JSONField where Self: CustomStringConvertible {
    package var json: JSONValue { .string(description) }
}

extension JSONField where Self: BinaryInteger {
    package var json: JSONValue { .integer(JSONInteger(exactly: self) ?? JSONInteger(UInt64.max)) }
}

extension JSONField where Self: RawRepresentable & CustomStringConvertible, RawValue == UInt64 {
    package var json: JSONValue { rawValue.json }
}

extension Array: JSONField where Element: JSONField {
    package var json: JSONValue { .array(map(\.json)) }
}

extension Bool: JSONField {
    package var json: JSONValue { .bool(self) }
}

extension JSONValue: JSONField {
    package var json: JSONValue { self }
}

extension String: JSONField {}
extension Name: JSONField {}
extension StoreName: JSONField {}
extension StoreVersion: JSONField {}
extension LogID: JSONField {}
extension Int: JSONField {}
extension UInt32: JSONField {}
extension UInt64: JSONField {}
extension SequenceNumber: JSONField {}
extension Epoch: JSONField {}
extension Incarnation: JSONField {}
