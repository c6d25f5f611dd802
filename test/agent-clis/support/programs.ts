import { fileURLToPath } from 'node:url'

export const programs = fileURLToPath(
  new URL('../../../../test/agent-clis/node_modules/.bin', import.meta.url),
)

/** Files of a person's own: settings and login of each program, which must keep working. */
export const loginFiles = (origin: string): Readonly<Record<string, string>> => ({
  '.codex/config.toml': `model = "fake-model"
model_provider = "fake"
[model_providers.fake]
name = "fake"
base_url = "${origin}/v1"
env_key = "FAKE_KEY"
wire_api = "responses"
`,
  '.gemini/settings.json': `{
  // Settings of Gemini CLI have comments: "http://not.one".
  "security": { "auth": { "selectedType": "gemini-api-key" } }
}
`,
  '.config/opencode/opencode.json': JSON.stringify({
    model: 'fake/fake-model',
    provider: {
      fake: {
        npm: '@ai-sdk/openai-compatible',
        options: { baseURL: `${origin}/v1`, apiKey: 'key' },
        models: { 'fake-model': { name: 'fake' } },
      },
    },
  }),
})

export const agentsFile = (origin: string): string => `agents:
  claude: { kind: claude, env: { ANTHROPIC_BASE_URL: "${origin}", ANTHROPIC_API_KEY: "env:FAKE_KEY" } }
  codex: { kind: codex, env: { FAKE_KEY: "env:FAKE_KEY" } }
  gemini: { kind: gemini, args: [-m, gemini-2.5-flash], env: { GOOGLE_GEMINI_BASE_URL: "${origin}", GEMINI_API_KEY: "env:FAKE_KEY" } }
  opencode: { kind: opencode, env: { OPENCODE_DISABLE_MODELS_FETCH: "1" } }
`

export const kinds = ['claude', 'codex', 'gemini', 'opencode'] as const
