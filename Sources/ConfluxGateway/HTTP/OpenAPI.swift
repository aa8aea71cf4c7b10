import Conflux
import ConfluxNode
import ConfluxWorker

/// The description of the API, in the form of [OpenAPI 3.1](https://spec.openapis.org/oas/v3.1.0): with the stores of
/// this gateway, and the shapes of their actions.
enum OpenAPI {
    static func document(of stores: [any AnyServedStore]) -> [UInt8] {
        var paths: JSONObject = [
            "/api/v1/openapi.json": [
                "get": operation(
                    "document", "This document.", parameters: [],
                    answer("The document.", ["type": "object"]))
            ],
            "/api/v1/stores": [
                "get": operation(
                    "stores", "The stores that the gateway serves.", parameters: [timeout],
                    answer("The stores, with their newest numbers.", object(["stores": listing])))
            ],
        ]
        for path in consolePaths { paths[path.key] = path.value }
        paths["/api/v1/stores/{state}/{instance}"] = ["get": kept]
        for store in stores {
            let path = "/api/v1/stores/\(store.name)"
            paths[path] = ["get": state(store.name)]
            paths["\(path)/difference"] = ["get": difference(store.name)]
            paths["\(path)/entries"] = ["get": entries(store.name)]
            paths["\(path)/events"] = ["get": events(store.name)]
            paths["\(path)/actions"] = ["get": actions(store.name), "post": dispatch(store)]
        }
        let document: JSONValue = [
            "openapi": "3.1.0",
            "info": [
                "title": "Conflux gateway", "version": "1",
                "description":
                    "Replicated stores: read them, follow them, and dispatch actions to them.",
            ],
            "security": [[:], ["token": []]], "paths": .object(paths), "components": components,
        ]
        return JSONLayout.bytes(document.description.utf8, .plain, columns: 120) + "\n".utf8
    }

    // MARK: The operations

    private static func state(_ store: StoreName) -> JSONValue {
        operation(
            "get \(store)", "The state of a store.",
            "It has everything that the gateway had applied when it took the request, and so everything for which it gave you a receipt.",
            parameters: [
                parameter(
                    "atLeast", in: "query",
                    "The number of a receipt: the state has that action, too.", sequence),
                parameter(
                    "at", in: "query",
                    "The number of an entry: the state as it was behind it. Not with 'atLeast'.",
                    sequence),
                without, timeout,
            ],
            answer(
                "The state.",
                object(
                    [
                        "at": sequence, "epoch": ["type": ["integer", "null"]],
                        "log": ["type": ["string", "null"]], "sequence": sequence, "state": [:],
                        "store": text, "version": version,
                    ], optional: ["at", "version"]),
                headers: ["ETag": ["description": "The version, for If-Match.", "schema": text]]))
    }

    private static func events(_ store: StoreName) -> JSONValue {
        operation(
            "events \(store)", "What happens to a store.",
            "Server-sent events: the state first, or what you have missed, and then each change, for as long as you read. The data of an event is a JSON object with a head and a body.",
            parameters: [
                parameter(
                    "since", in: "query",
                    "The number of the last event that you have. You get what came after it; or the state if that is too long ago.",
                    sequence),
                parameter(
                    "Last-Event-ID", in: "header",
                    "The id of the last event that you have, instead of 'since'.", text),
                parameter(
                    "as", in: "query",
                    "Changes are JSON Patches (RFC 6902); actions are those that were dispatched, also those that were refused.",
                    ["type": "string", "enum": ["changes", "actions"], "default": "changes"]),
            ],
            answer(
                "The events. Their names are state, change, action, refused and ended.",
                schema("event"), as: "text/event-stream"))
    }

    private static func actions(_ store: StoreName) -> JSONValue {
        operation(
            "actions \(store)", "The shapes of a store's actions.", parameters: [timeout],
            answer(
                "The actions with their fields; null stands for fields that are not known.",
                object(["actions": ["type": ["object", "null"]], "store": text])))
    }

    // `If-Match` is described in words: which values are accepted depends on the state, and no schema could say it.
    private static func dispatch(_ store: any AnyServedStore) -> JSONValue {
        operation(
            "dispatch \(store.name)", "Dispatch an action.",
            "The answer is a receipt: the action is in the log, durable, and applied at this gateway. With the header If-Match and the ETag of the state, the action is taken only if nothing has changed the store since; otherwise the answer has the status 412 and the present ETag.",
            parameters: [
                parameter(
                    "Idempotency-Key", in: "header",
                    "Repeat a request with the same key as often as you like: the action is applied once, and you get its first outcome.",
                    ["type": "string", "pattern": "^[!-~]{1,128}$"]),
                timeout,
            ],
            body: [
                "required": true,
                "description": "The action, as the operation 'actions' describes it.",
                "content": content(store.catalog?.schema ?? ["type": ["object", "string"]]),
            ],
            answer(
                "The receipt.",
                object([
                    "receipt": object([
                        "epoch": ["type": "integer"], "log": text, "sequence": sequence,
                        "timestamp": ["type": "string", "format": "date-time"],
                    ])
                ])))
    }

    // MARK: The parts

    static let text: JSONValue = ["type": "string"]
    static let sequence = schema("sequence")
    private static let version = schema("version")
    static let timeout: JSONValue = ["$ref": "#/components/parameters/timeout"]

    private static let listing: JSONValue = [
        "type": "array",
        "items": object(
            [
                "store": text, "sequence": sequence,
                "ended": [
                    "type": "string", "description": "Why the store is not served any more.",
                ],
            ], optional: ["ended", "sequence"]),
    ]

    private static let components: JSONValue = [
        "securitySchemes": [
            "token": [
                "type": "http", "scheme": "bearer",
                "description": "The token of the gateway's --http-token, if it has one.",
            ]
        ],
        "parameters": [
            "timeout": parameter(
                "timeout", in: "query", "How long the request may take, in milliseconds.",
                ["type": "integer", "minimum": 100, "maximum": 3_600_000, "default": 10_000])
        ],
        "responses": [
            "problem": answer(
                "Why there is no other answer (RFC 9457). The detail says what to do.",
                schema("problem"), as: "application/problem+json")
        ],
        "schemas": [
            "event": object([
                "data": [
                    "type": "string", "contentMediaType": "application/json",
                    "description": "An object with a head and a body: docs/gateway.md has them.",
                ],
                "event": [
                    "type": "string", "enum": ["action", "change", "ended", "refused", "state"],
                ], "id": text,
            ]),
            "sequence": [
                "type": "integer", "minimum": 0, "maximum": 9_223_372_036_854_775_807,
                "description": "The number of an entry in the log.",
            ],
            "version": [
                "type": "string", "pattern": "^[0-9]+(@[0-9]+)?$",
                "description": "The version of a store, for If-Match.",
            ],
            "problem": object(
                [
                    "type": text, "title": text, "status": ["type": "integer"],
                    "code": ["type": "string", "description": "What kind of problem it is."],
                    "detail": text, "sequence": sequence, "version": version,
                ], optional: ["sequence", "version"]),
        ],
    ]

    static func operation(
        _ id: String, _ summary: String, _ description: String? = nil, parameters: [JSONValue],
        body: JSONValue? = nil, _ answer: JSONValue
    ) -> JSONValue {
        var operation: JSONObject = [
            "operationId": .string(id), "summary": .string(summary),
            "responses": [
                "200": answer, "default": ["$ref": "#/components/responses/problem"],
            ],
        ]
        operation["description"] = description.map { .string($0) }
        operation["parameters"] = parameters.isEmpty ? nil : .array(parameters)
        operation["requestBody"] = body
        return .object(operation)
    }

    static func parameter(
        _ name: String, in place: String, _ description: String, _ schema: JSONValue,
        isRequired: Bool = false
    ) -> JSONValue {
        [
            "required": .bool(isRequired), "name": .string(name), "in": .string(place),
            "description": .string(description),
            "schema": schema,
        ]
    }

    static func answer(
        _ description: String, _ schema: JSONValue, as type: String = "application/json",
        headers: JSONValue? = nil
    ) -> JSONValue {
        var answer: JSONObject = [
            "description": .string(description), "content": content(schema, as: type),
        ]
        answer["headers"] = headers
        return .object(answer)
    }

    static func content(
        _ schema: JSONValue, as type: String = "application/json"
    ) -> JSONValue {
        .object([type: ["schema": schema]])
    }

    private static func schema(_ name: String) -> JSONValue {
        ["$ref": .string("#/components/schemas/\(name)")]
    }

    /// The schema of an object that has all of these members, besides optional ones, and no others.
    static func object(_ members: JSONObject, optional: Set<String> = []) -> JSONValue {
        [
            "type": "object", "additionalProperties": false, "properties": .object(members),
            "required": .array(
                members.map(\.key).filter { !optional.contains($0) }.map { .string($0) }),
        ]
    }
}
