import type { Path } from '../paths.ts'
import type { MacAlgorithm, SignatureForm } from './form.ts'

/** Named by the first sender that has it. */
export type HandshakeKind =
  | 'asana'
  | 'aws-sns'
  | 'bitbucket'
  | 'buildkite'
  | 'cal-com'
  | 'cloudflare'
  | 'cloudevents'
  | 'discord'
  | 'discourse'
  | 'dropbox'
  | 'figma'
  | 'github'
  | 'google-calendar'
  | 'intercom'
  | 'line'
  | 'meta'
  | 'microsoft-graph'
  | 'monday'
  | 'notion'
  | 'pagerduty'
  | 'slack'
  | 'strava'
  | 'terraform'
  | 'trello'
  | 'twitch'
  | 'websub'
  | 'woocommerce'
  | 'xero'
  | 'zoom'

/** How a sender tests an address by GET or HEAD: it wants back what it sends, or an HMAC of that. */
export type Challenge = {
  /** The parameter of the query, or the header, that has it. */
  readonly query?: string | undefined
  readonly header?: string | undefined
  /** The member of a JSON object for the answer; without one it is plain text. */
  readonly json?: string | undefined
  readonly hmac?: MacAlgorithm | undefined
  readonly encoding?: 'hex' | 'base64' | undefined
  readonly prefix?: string | undefined
  /** The member with the challenge itself, beside an HMAC. */
  readonly echo?: string | undefined
}

/** What the table says of one sender. */
export type SchemeFacts = {
  /** For `webhook add` and the documents. */
  readonly title: string
  /** What the sender calls the secret or key, and where its pages have it. */
  readonly secretIs: string
  readonly where: string
  /** What its secrets look like, and what is said of one that does not. */
  readonly secretForm?: { readonly pattern: RegExp; readonly fault: string }
  /** doorward makes the secret, a short one where the sender takes no long one, and the owner enters it there. */
  readonly makesSecret?: true | 'short'
  /**
   * From strongest to weakest: the first with a header in the request and a secret is used. The last is what
   * the sender usually sends.
   */
  readonly forms: readonly SignatureForm[]
  /**
   * How far a signed time may be in the past or the future, in seconds. A time far in the future would allow
   * a replay until then. Stripe and Slack recommend five minutes; Slack's page, Stripe's PHP library and
   * Standard Webhooks limit both directions.
   */
  readonly toleranceSeconds?: number
  /**
   * How old a signed time may be in a delivery that was never seen, in seconds: the sender sends again with
   * the old time.
   */
  readonly lateSeconds?: number
  /** Field of the body with the signed time in milliseconds, if no header has it. */
  readonly bodyTimestamp?: string
  /** Where the delivery id is: headers, tried in order, and a field of the verified body. */
  readonly deliveryId: {
    readonly headers: readonly string[]
    readonly body?: string
    /** Deliveries with other bodies can have the same id. */
    readonly isShared?: true
    /** Ids count for their source only: a header, and the media type of a body with both as fields. */
    readonly source?: {
      readonly header: string
      readonly field: string
      readonly mediaType: string
    }
  }
  /**
   * What names the kind of event, for `on`: a field of the body, which a signature covers, else a header; and
   * the field with the action.
   */
  readonly event?: {
    readonly header?: string
    readonly field?: string
    readonly action?: string
    /**
     * All events of a body that has several: each has its field and action, and the body the field that an
     * event lacks.
     */
    readonly items?: Path
    /** `on` may name the action alone. */
    readonly isActionNamed?: true
    /** Two other headers, with the event and its action. */
    readonly headers?: readonly [event: string, action: string]
  }
  /** Objects of the payload say when they changed last: `updated_at`. */
  readonly hasUpdatedAt?: true
  /** The fields of its forms are the headers of mails, which strangers name. */
  readonly mailAsForm?: true
  /** The sender calls its JSON text/plain. */
  readonly jsonAsText?: true
  /** Its bodies are no JSON and no forms: plain text, JSON in each line, or XML. */
  readonly bodyType?: 'text' | 'ndjson' | 'xml'
  /** It may compress them, and signs what it sends. */
  readonly gzip?: true
  /** The sender has no body: these headers, in lower case, are the payload. */
  readonly emptyBody?: readonly string[]
  /** How the sender tests an address. */
  readonly handshake?: HandshakeKind
  readonly challenge?: Challenge
  /** The sender takes no 202, or no text: it gets an empty 200. */
  readonly emptyReply?: true
  /** Nor does it take text with a refusal. */
  readonly emptyRefusal?: true
  /** The sender takes only this answer. */
  readonly answer?: { readonly status: number; readonly text: string }
  readonly source: string
}

/** What the table says, with the name of its entry. */
export type SignatureScheme<Name extends string = string> = SchemeFacts & { readonly name: Name }

/** Where the sender publishes the keys that it signs with: it then has no secret. */
export const getKeySource = ({ forms }: SchemeFacts): SignatureForm['keysFrom'] =>
  forms[0]?.keysFrom

/** True where only the sender has the private key: `webhook send` makes a pair of its own. */
export const hasPrivateKey = ({ check }: SignatureForm): boolean =>
  ['key-pair', 'oidc', 'google', 'plaid', 'paypal', 'sns'].includes(check)

/** The audience of a token that is for `server.public_url`, where the entry names no other. */
export const addressAsAudience = '{public_url}'

/** True where the signature covers the public address, which must then be configured. */
export const signsAddress = ({ forms }: SignatureScheme): boolean =>
  forms.some(({ signs, audience }) => signs.includes('{url}') || audience === addressAsAudience)
