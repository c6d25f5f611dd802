import { dirname } from 'node:path'

/*
 * Files that steer an agent, or its program: instructions, settings, tools and environment. A change that an
 * agent is to judge must not bring its own.
 */

/** Names and paths in any folder, whatever their case; `*` is any part of a name. */
type SteeringFiles = {
  readonly program: string
  /** Where the program's own documents, or its code, name them. */
  readonly source: string
  readonly files: readonly string[]
}

export const steeringFiles: readonly SteeringFiles[] = [
  {
    program: 'Claude Code',
    source: 'https://code.claude.com/docs/en/memory',
    files: ['CLAUDE.md', 'CLAUDE.local.md'],
  },
  {
    program: 'Claude Code',
    source: 'https://code.claude.com/docs/en/settings',
    files: ['.claude/', '.mcp.json'],
  },
  {
    program: 'Claude Code',
    source: 'https://code.claude.com/docs/en/code-review-customize',
    files: ['REVIEW.md'],
  },
  {
    program: 'Codex',
    source: 'https://developers.openai.com/codex/guides/agents-md',
    files: ['AGENTS.md', 'AGENTS.override.md'],
  },
  {
    program: 'Codex',
    source: 'https://developers.openai.com/codex/config-basic',
    files: ['.codex/'],
  },
  {
    program: 'Codex, Gemini CLI and others',
    source: 'https://developers.openai.com/codex/skills',
    files: ['.agents/'],
  },
  {
    program: 'Gemini CLI',
    source: 'https://geminicli.com/docs/reference/configuration',
    files: ['GEMINI.md', '.gemini/', '.geminiignore', '.env', '.env.*'],
  },
  {
    program: 'OpenCode',
    source:
      'https://github.com/anomalyco/opencode/blob/dev/packages/opencode/src/session/instruction.ts',
    files: ['AGENTS.local.md', 'CONTEXT.md', 'CONTEXT.local.md'],
  },
  {
    program: 'OpenCode',
    source: 'https://opencode.ai/docs/config',
    files: ['opencode.json', 'opencode.jsonc', '.opencode/'],
  },
  {
    program: 'GitHub Copilot',
    source:
      'https://docs.github.com/en/copilot/reference/copilot-cli-reference/cli-config-dir-reference',
    files: [
      'copilot-instructions.md',
      '*.instructions.md',
      '.github/agents/',
      '.github/copilot/',
      '.github/hooks/',
      '.github/mcp.json',
      '.github/lsp.json',
      '.github/skills/',
    ],
  },
  {
    program: 'GitHub Copilot',
    source: 'https://docs.github.com/en/copilot/concepts/agents/copilot-cli/about-cli-extensions',
    files: ['.github/extensions/'],
  },
  {
    program: 'VS Code',
    source: 'https://code.visualstudio.com/docs/copilot/customization/overview',
    files: ['.github/prompts/', '.github/instructions/'],
  },
  {
    program: 'VS Code',
    source: 'https://code.visualstudio.com/docs/copilot/customization/custom-chat-modes',
    files: ['.github/chatmodes/'],
  },
  {
    program: 'VS Code',
    source: 'https://code.visualstudio.com/docs/copilot/customization/mcp-servers',
    files: ['.vscode/mcp.json'],
  },
  {
    program: 'Cursor',
    source: 'https://cursor.com/docs/context/rules',
    files: ['.cursor/', '.cursorrules'],
  },
  {
    program: 'Windsurf',
    source: 'https://docs.windsurf.com/windsurf/cascade/memories',
    files: ['.windsurf/', '.windsurfrules'],
  },
  {
    program: 'Cline',
    source: 'https://docs.cline.bot/customization/cline-rules',
    files: ['.clinerules', '.cline/'],
  },
  {
    program: 'Roo Code',
    source: 'https://docs.roocode.com/features/custom-instructions',
    files: ['.roo/', '.roorules', '.roorules-*', '.roomodes'],
  },
  {
    program: 'Kilo Code',
    source: 'https://kilo.ai/docs/customize/custom-rules',
    files: ['.kilocode/', '.kilo/', '.kilocoderules', '.kilocodemodes', 'kilo.json', 'kilo.jsonc'],
  },
  {
    program: 'Continue',
    source: 'https://docs.continue.dev/customize/deep-dives/rules',
    files: ['.continue/', '.continuerules'],
  },
  {
    program: 'Crush',
    source: 'https://github.com/charmbracelet/crush/blob/main/internal/config/config.go',
    files: ['CRUSH.md', 'CRUSH.local.md', 'crush.json', '.crush.json', '.crush/'],
  },
  {
    program: 'Crush, before its name',
    source: 'https://github.com/opencode-ai/opencode#configuration',
    files: ['.opencode.json'],
  },
  {
    program: 'Qwen Code',
    source: 'https://qwenlm.github.io/qwen-code-docs/en/users/configuration/settings',
    files: ['QWEN.md', '.qwen/'],
  },
  { program: 'Kiro', source: 'https://kiro.dev/docs/cli/steering', files: ['.kiro/'] },
  {
    program: 'Junie',
    source: 'https://www.jetbrains.com/help/junie/customize-guidelines.html',
    files: ['.junie/'],
  },
  {
    program: 'Warp',
    source: 'https://docs.warp.dev/agents/capabilities/rules',
    files: ['WARP.md'],
  },
  { program: 'Zed', source: 'https://zed.dev/docs/ai/rules', files: ['.rules', 'AGENT.md'] },
  {
    program: 'Augment',
    source: 'https://docs.augmentcode.com/cli/rules',
    files: ['.augment/', '.augment-guidelines'],
  },
  {
    program: 'Factory',
    source: 'https://docs.factory.ai/cli/configuration/settings',
    files: ['.factory/'],
  },
  {
    program: 'Goose',
    source: 'https://block.github.io/goose/docs/guides/context-engineering/using-goosehints',
    files: ['.goosehints'],
  },
  {
    program: 'Aider',
    source: 'https://aider.chat/docs/config/aider_conf.html',
    files: ['.aider.conf.yml'],
  },
  {
    program: 'npx, for tools that it starts',
    source: 'https://docs.npmjs.com/cli/configuring-npm/npmrc',
    files: ['.npmrc'],
  },
  {
    program: 'Bun, for programs that are built with it',
    source: 'https://bun.com/docs/runtime/bunfig',
    files: ['bunfig.toml'],
  },
  { program: 'direnv', source: 'https://direnv.net/man/direnv.1.html', files: ['.envrc'] },
  {
    program: 'mise',
    source: 'https://mise.jdx.dev/configuration.html',
    files: [
      'mise.toml',
      'mise.*.toml',
      '.mise.toml',
      '.mise.*.toml',
      '.mise/',
      'mise/config.toml',
      '.config/mise.toml',
      '.config/mise/',
    ],
  },
]

/**
 * A path of a tree (`/` between its parts, a character for each byte) as file systems may read it: they can ignore
 * case, in their way also that of `ſ`, and characters that are not seen.
 */
export const foldPath = (path: string): string =>
  Buffer.from(path, 'latin1')
    .toString()
    .replaceAll(/\p{Cf}/gu, '')
    .toUpperCase()
    .toLowerCase()

const anyOf = (paths: readonly string[]): string =>
  `(${paths
    .map((path) =>
      foldPath(path)
        .replaceAll('.', String.raw`\.`)
        .replaceAll('*', '[^/]*'),
    )
    .join('|')})`

const paths = steeringFiles.flatMap(({ files }) => files.map((file) => file.replace(/\/$/, '')))
const steering = new RegExp(`(^|/)${anyOf(paths)}(/|$)`)

const parents = paths.filter((path) => path.includes('/')).map((path) => dirname(path))
const parent = new RegExp(`(^|/)${anyOf([...new Set(parents)])}$`)

/**
 * True for such a file, and for what is in a folder of that name. A link called `.github` counts too: it can lead to
 * a folder with another name.
 */
export const steersAgent = (path: string, isLink = false): boolean => {
  const folded = foldPath(path)
  return steering.test(folded) || (isLink && parent.test(folded))
}
