/** The well-known forms of secrets that answers and changes are searched for, as `allow_secrets` names them. */
export const formKinds = [
  'github-token',
  'gitlab-token',
  'slack-token',
  'slack-webhook',
  'stripe-key',
  'webhook-secret',
  'aws-key',
  'google-key',
  'openai-key',
  'anthropic-key',
  'npm-token',
  'pypi-token',
  'huggingface-token',
  'sendgrid-key',
  'discord-webhook',
  'telegram-token',
  'linear-key',
  'atlassian-token',
  'private-key',
  'jwt',
] as const
export type FormKind = (typeof formKinds)[number]

/** What a rule may allow: no token of a login, key of a bot or secret of a client is among them. */
export const allowedKinds = [...formKinds, 'env-value'] as const
export type AllowedKind = (typeof allowedKinds)[number]
