"""Names that are known without a graph: technologies, practices, organisations, given names.

Plain facts of our own compiling, by kind, in the spelling that their makers use. A name
whose lower-case form is an English word (`Go`, `Spring`) stands in `CASED`: it counts only
in its own spelling. Everything else counts in any case.
"""

from __future__ import annotations

from typing import Final

_TECHNOLOGIES: Final = """
Python; Java; JavaScript; TypeScript; C++; C#; Go; Golang; Rust; Ruby; PHP; Perl; Swift; Kotlin;
Scala; Haskell; Erlang; Elixir; Clojure; OCaml; Fortran; COBOL; Julia; Lua; Zig; Dart; Groovy;
MATLAB; SQL; PL/pgSQL; T-SQL; HTML; CSS; Sass; Bash; PowerShell; Zsh; WebAssembly; Wasm; Solidity;
Objective-C; Visual Basic; F#; Assembly; GraphQL; Cypher; SPARQL; CUDA; OpenCL; Verilog; VHDL;
PostgreSQL; Postgres; MySQL; MariaDB; SQLite; Oracle; SQL Server; MongoDB; Redis; Valkey; Memcached;
Cassandra; ScyllaDB; DynamoDB; CouchDB; Couchbase; Neo4j; ArangoDB; Memgraph; JanusGraph;
CockroachDB; TiDB; YugabyteDB; Spanner; BigQuery; Redshift; Snowflake; ClickHouse; DuckDB; Druid;
Pinot; InfluxDB; TimescaleDB; Prometheus; VictoriaMetrics; Elasticsearch; OpenSearch; Solr; Lucene;
Meilisearch; Typesense; Algolia; pgvector; Qdrant; Milvus; Weaviate; Pinecone; Chroma; ChromaDB;
FAISS; LanceDB; Firestore; Firebase; Supabase; Realm; RocksDB; LevelDB; LMDB; etcd; ZooKeeper;
Kafka; Apache Kafka; RabbitMQ; ActiveMQ; NATS; Pulsar; Kinesis; ZeroMQ; MQTT; AMQP; Celery; Sidekiq;
BullMQ; Resque; Airflow; Apache Airflow; Dagster; Prefect; Luigi; Temporal; dbt; Spark;
Apache Spark; PySpark; Flink; Hadoop; HDFS; MapReduce; Hive; Presto; Trino; Beam; Storm; Databricks;
Iceberg; Delta Lake; Parquet; Avro; Arrow; Fivetran; Debezium; NiFi; Polars; pandas; NumPy; SciPy;
Matplotlib; Jupyter; Dask; Ray; scikit-learn; PyTorch; TensorFlow; Keras; JAX; XGBoost; LightGBM;
CatBoost; spaCy; NLTK; OpenCV; ONNX; ONNX Runtime; TensorRT; vLLM; llama.cpp; Ollama; LangChain;
LangGraph; LlamaIndex; AutoGen; CrewAI; Haystack; Transformers; Hugging Face; fastembed; MLflow;
Kubeflow; Weights & Biases; GPT-3; GPT-4; GPT-4o; GPT-5; ChatGPT; Claude; Claude Code; Gemini;
Llama; Mistral; BERT; Whisper; Stable Diffusion; CLIP; MiniLM; Copilot; Cursor; Cline; Codex;
Roo Code; Django; Flask; FastAPI; Starlette; Tornado; aiohttp; httpx; Pydantic; SQLAlchemy; Alembic;
Gunicorn; Uvicorn; uWSGI; Spring; Spring Boot; Hibernate; Quarkus; Micronaut; Vert.x; Netty; Tomcat;
Jetty; Rails; Ruby on Rails; Sinatra; Laravel; Symfony; WordPress; Drupal; Magento; Express;
Express.js; NestJS; Koa; Fastify; Hapi; Next.js; Nuxt; Remix; Gatsby; Astro; Node.js; Node; Deno;
Bun; React; React Native; Redux; Zustand; MobX; Vue; Vue.js; Vuex; Angular; AngularJS; Svelte;
SvelteKit; Solid.js; jQuery; Bootstrap; Tailwind; Tailwind CSS; Material UI; Storybook; Vite;
Webpack; Rollup; esbuild; Babel; ESLint; Prettier; npm; Yarn; pnpm; Turborepo; Prisma; TypeORM;
Sequelize; Drizzle; Mongoose; Electron; Tauri; Flutter; Ionic; Capacitor; Xamarin; SwiftUI; UIKit;
Jetpack Compose; Three.js; D3.js; WebGL; WebGPU; WebRTC; Unity; Unreal Engine; Godot; .NET; ASP.NET;
Blazor; Entity Framework; Axum; Actix; Rocket; Tokio; Serde; Gin; Fiber; Phoenix; Ecto;
Apollo Server; Docker; Docker Compose; Podman; containerd; Kubernetes; K8s; Helm; Istio; Linkerd;
Envoy; Consul; Nomad; Vault; HashiCorp Vault; Terraform; OpenTofu; Pulumi; Ansible; Chef; Puppet;
SaltStack; Packer; Vagrant; CloudFormation; Argo CD; ArgoCD; Flux; Jenkins; GitHub Actions;
GitLab CI; CircleCI; Travis CI; TeamCity; Bamboo; Buildkite; Bazel; Gradle; Maven; CMake; Make;
Ninja; Nix; Git; GitHub; GitLab; Bitbucket; Mercurial; Subversion; Nginx; Apache;
Apache HTTP Server; Caddy; Traefik; HAProxy; Kong; Varnish; Cloudflare; Fastly; Akamai; AWS;
Amazon Web Services; Azure; GCP; Google Cloud; Heroku; Vercel; Netlify; DigitalOcean; Fly.io;
Render; OpenStack; VMware; Proxmox; EC2; S3; Amazon S3; Lambda; AWS Lambda; RDS; EKS; ECS; Fargate;
SQS; SNS; EventBridge; CloudFront; CloudWatch; Route 53; IAM; API Gateway; Step Functions;
Cloud Run; Cloud Functions; Pub/Sub; GKE; AKS; MinIO; Ceph; Grafana; Loki; Tempo; Kibana; Logstash;
Fluentd; Fluent Bit; Vector; Jaeger; Zipkin; OpenTelemetry; Datadog; New Relic; Splunk; Sentry;
PagerDuty; Opsgenie; Nagios; Zabbix; statsd; Linux; Ubuntu; Debian; Fedora; CentOS; Red Hat; Alpine;
Alpine Linux; Arch Linux; Windows; macOS; iOS; Android; FreeBSD; Raspberry Pi; Arduino; ESP32;
systemd; cron; tmux; Vim; Neovim; Emacs; VS Code; Visual Studio; Visual Studio Code; IntelliJ;
PyCharm; Xcode; Eclipse; Postman; Insomnia; Swagger; OpenAPI; pytest; unittest; Hypothesis; tox;
nox; mypy; Pyright; Ruff; Black; isort; Poetry; pip; uv; conda; PyPI; Jest; Vitest; Mocha; Cypress;
Playwright; Puppeteer; Selenium; JUnit; Mockito; RSpec; Cucumber; k6; JMeter; Locust; SonarQube;
Dependabot; Renovate; Snyk; Trivy; Falco; Keycloak; Auth0; Okta; Cognito; OAuth; OAuth 2.0; OAuth2;
OpenID Connect; OIDC; SAML; LDAP; Active Directory; Kerberos; JWT; JWTs; bcrypt; argon2; scrypt;
HS256; RS256; AES; RSA; TLS; SSL; mTLS; SSH; OpenSSL; Let's Encrypt; HTTP; HTTPS; HTTP/2; HTTP/3;
QUIC; TCP; UDP; DNS; SMTP; IMAP; FTP; SFTP; WebSocket; WebSockets; gRPC; REST; SOAP; Thrift;
Protobuf; Protocol Buffers; MessagePack; JSON; JSON-RPC; YAML; TOML; XML; CSV; Markdown; MCP;
Model Context Protocol; Stripe; PayPal; Twilio; SendGrid; Mailgun; Segment; Mixpanel; Amplitude;
Google Analytics; HubSpot; Salesforce; Zendesk; Intercom; Slack; Discord; Telegram; Microsoft Teams;
Zoom; Jira; Confluence; Trello; Asana; Notion; Linear; Figma; Shopify; Contentful; Strapi; Sanity;
LaunchDarkly; Unleash; Flyway; Liquibase; PgBouncer; Patroni; Citus; PostGIS; BM25; HNSW; FTS5;
rustworkx; NetworkX; usearch; LMStudio; OpenAI API; Bedrock; Vertex AI; SageMaker; Hetzner;
Caffeine; Guava; Lombok; RxJS; RxJava; Akka; ZIO; Lettuce; Jedis;
"""

_PATTERNS: Final = """
RAG; retrieval-augmented generation; CQRS; DDD; TDD; BDD; MVC; MVVM; MVP; SOLID; DRY; KISS; YAGNI;
ACID; BASE; CRUD; CI/CD; SAGA; saga pattern; outbox pattern; transactional outbox; event sourcing;
event-driven architecture; domain-driven design; test-driven development;
behavior-driven development; circuit breaker; circuit breaker pattern; bulkhead; bulkhead pattern;
retry pattern; exponential backoff; rate limiting; rate limiter; token bucket; leaky bucket;
backpressure; cursor-based pagination; cursor pagination; offset pagination;
offset-based pagination; keyset pagination; optimistic locking; pessimistic locking;
optimistic concurrency; optimistic concurrency control; two-phase commit; blue-green deployment;
blue-green deployments; canary deployment; canary deployments; canary release; canary releases;
rolling update; rolling updates; rolling deployment; feature flag; feature flags; feature toggle;
feature toggles; trunk-based development; infrastructure as code; GitOps; microservices;
microservice architecture; monolith; modular monolith; monorepo; serverless; service mesh;
sidecar pattern; strangler fig; strangler fig pattern; strangler pattern; hexagonal architecture;
clean architecture; onion architecture; layered architecture; ports and adapters;
repository pattern; unit of work; active record; data mapper; dependency injection;
inversion of control; singleton; singleton pattern; factory pattern; factory method;
abstract factory; builder pattern; adapter pattern; facade pattern; decorator pattern;
proxy pattern; strategy pattern; observer pattern; visitor pattern; command pattern;
mediator pattern; state machine; finite state machine; publish-subscribe; pub/sub pattern;
message queue; message queues; dead letter queue; dead-letter queue; connection pooling;
connection pool; read replica; read replicas; sharding; database sharding; consistent hashing;
write-ahead log; write-ahead logging; materialized view; materialized views; cache-aside;
write-through cache; read-through cache; cache invalidation; lazy loading; eager loading;
memoization; pair programming; code review; chain of thought; chain-of-thought; few-shot prompting;
fine-tuning; reciprocal rank fusion; vector search; semantic search; full-text search;
hybrid search; multi-tenancy; soft delete; soft deletes; idempotency keys; idempotency key;
leader election; gossip protocol; map-reduce; eventual consistency; strong consistency; zero trust;
least privilege; role-based access control; RBAC; ABAC; single sign-on; SSO;
two-factor authentication; 2FA; MFA; server-side rendering; SSR; static site generation; Scrum;
Kanban; chaos engineering; property-based testing; contract testing; snapshot testing;
mutation testing; load testing; integration testing; unit testing; end-to-end testing;
smoke testing; A/B testing; hexagonal pattern; ETL; ELT; change data capture; CDC;
MapReduce pattern; API-first; long polling; server-sent events; actor model; copy-on-write;
bloom filter; bloom filters; LRU cache;
"""

# What something is used for. Nothing to be named by itself; a thing where a relation names it.
_CONCERNS: Final = """
caching; cache; pagination; authentication; authorization; logging; monitoring; tracing; metrics;
alerting; search; indexing; storage; persistence; messaging; queueing; queuing; scheduling;
orchestration; deployment; deployments; testing; validation; serialization; encryption; hashing;
compression; routing; load balancing; service discovery; configuration; analytics; reporting;
billing; payments; notifications; emails; embeddings; inference; training; streaming; replication;
backups; migrations; rendering; state management; session storage; sessions; observability;
error tracking; linting; formatting; type checking; templating; parsing; tokenization; rate limits;
retries; localization; file uploads; image processing; background jobs; job queues;
distributed tracing; log aggregation; container orchestration; data validation; token signing;
session management; secrets management; dependency management; version control;
"""

_ORGANIZATIONS: Final = """
Google; Microsoft; Amazon; Apple; Meta; Facebook; Netflix; OpenAI; Anthropic; DeepMind; NVIDIA;
Intel; AMD; IBM; Oracle Corporation; SAP; Siemens; Bosch; Uber; Lyft; Airbnb; Spotify; Dropbox;
Adobe; Cisco; Dell; HP; Samsung; Sony; Huawei; Alibaba; Tencent; ByteDance; Baidu; Yandex;
JetBrains; HashiCorp; Red Hat Inc; Canonical; Mozilla; Apache Software Foundation; Linux Foundation;
CNCF; NASA; CERN; ESA; MIT; Stanford; Stanford University; Harvard; Oxford; Cambridge; ETH Zurich;
W3C; IETF; Accenture; Deloitte; Thoughtworks; Twitter; LinkedIn; Reddit; Tesla; SpaceX; Zalando;
Klarna;
"""

_CASED: Final = """
Go; Rust; Ruby; Swift; Dart; Julia; Oracle; Realm; Spanner; Snowflake; Redshift; Druid; Pinot;
Temporal; Spark; Hive; Beam; Storm; Iceberg; Parquet; Arrow; Ray; Chroma; Pulsar; Celery; Prefect;
Luigi; Presto; Haystack; Transformers; Gemini; Whisper; Mistral; Copilot; Cursor; Flask; Tornado;
Spring; Rails; Express; Koa; Node; Bun; React; Angular; Rocket; Gin; Fiber; Phoenix; Helm; Envoy;
Consul; Nomad; Vault; Chef; Puppet; Packer; Flux; Bamboo; Make; Ninja; Apache; Caddy; Kong; Varnish;
Render; Lambda; Loki; Tempo; Vector; Windows; Alpine; Eclipse; Postman; Insomnia; Hypothesis; Black;
Poetry; Jest; Mocha; Cypress; Cucumber; Locust; Renovate; Segment; Amplitude; Intercom; Slack; Zoom;
Notion; Linear; Bedrock; Unity; Storybook; Capacitor; Remix; Astro; Prisma; Drizzle; Mongoose;
Electron; Bootstrap; Assembly; Caffeine; Lettuce; Sanity; Unleash; Discord; Meta; Apple; Amazon;
Oxford; Cambridge; REST; SOAP; CLIP; Arduino; Trivy; Cline; Claude; SAGA; BASE; SOLID; DRY; KISS;
MIT; SAP; Conda; Keras; Solr; Rollup; Thrift; Guava; Dask; Sketch; HP; CSS; Hapi; Nix; Fastly;
Cassandra; Perl; Codex; Lucene; Jaeger; Falco; Harvard; Uber; Tesla; IAM; CRUD; CDC; ETL;
"""

_GIVEN_NAMES: Final = """
Aaron Abdul Adam Adrian Ahmed Aisha Akira Alan Albert Alejandro Alex Alexander Alexandra Alexey
Alice Alicia Alina Amanda Amara Amina Amir Amy Ana Anastasia Anders Andrea Andreas Andrei Andrew
Andrey Angela Anita Anja Ann Anna Anne Annika Anton Antonio Anya Arjun Arthur Asha Astrid Ava Ayesha
Barbara Beatrice Ben Benjamin Bernd Bob Boris Brian Bruno Camila Carl Carla Carlos Carmen Caroline
Catherine Cecilia Charles Charlotte Chen Chiara Chloe Chris Christian Christina Christopher Clara
Claudia Cleo Colin Connor Dana Daniel Daniela Daria Dave David Deborah Deepa Dennis Derek Diana
Diego Dieter Dimitri Dmitri Dmitry Dominic Dora Dorothy Dylan Edward Ekaterina Elena Eleanor Eli
Elias Elif Elisa Elizabeth Ella Emil Emily Emma Eric Erik Erika Esther Ethan Eva Evelyn Fatima Felix
Fernando Fiona Francesca Francisco Frank Franz Frida Gabriel George Gerald Giulia Greta Gustav Hana
Hanna Hannah Hans Harry Hassan Heidi Heinrich Helen Helena Henrik Henry Hiroshi Hugo Ian Ibrahim Ida
Igor Ilya Ines Ingrid Irina Iris Isaac Isabel Isabella Ivan Jack Jacob James Jamie Jan Jana Jane
Janet Jasmine Jason Javier Jean Jeff Jennifer Jenny Jens Jeremy Jessica Jim Joan Joanna Joe Johan
Johannes John Jonas Jonathan Jordan Jorge Jose Joseph Joshua Juan Judith Jules Julian Kai Karen
Karim Karin Karl Kate Katherine Katja Katya Kavya Keiko Keith Ken Kenji Kevin Khaled Kim Kira Klaus
Kofi Kumar Kwame Lara Larry Lars Laura Lea Leah Leila Lena Leo Leon Leonardo Li Liam Lily Linda Ling
Linus Lisa Liu Liz Lucas Lucia Lucy Luis Luisa Luka Lukas Luna Lydia Magnus Maja Malik Manuel Marco
Marcus Margaret Maria Mariam Marie Marina Mario Marta Martha Martin Mary Masha Mateo Matt Matteo
Matthew Maya Mehmet Mei Melissa Mia Michael Michelle Miguel Mika Mike Mikhail Mila Milan Miriam
Mohamed Mohammed Monica Nadia Naomi Natalia Natalie Natasha Nathan Neha Nicholas Nick Nicole Nikhil
Nikita Nikolai Nils Nina Noah Noor Nora Olaf Oleg Olga Oliver Olivia Omar Oscar Otto Pablo Patricia
Patrick Paul Paula Pavel Pedro Peter Petra Philip Pierre Piotr Pooja Priya Rachel Rafael Raj Rahul
Ralf Ramesh Ravi Raymond Rebecca Ricardo Richard Rita Robert Roberto Robin Roger Roman Rosa Ruth
Ryan Sabine Sam Samantha Samir Samuel Sandra Sanjay Sara Sarah Sasha Satoshi Sean Sebastian Sergei
Sergey Shreya Simon Simone Sofia Sonia Sophia Sophie Stefan Stella Stephanie Stephen Steve Steven
Sunita Susan Sven Sylvia Tamara Tanya Tara Tatiana Ted Teresa Theo Theresa Thomas Tim Timothy Tina
Tobias Tom Tomas Tony Ulrich Ursula Uwe Valentina Vanessa Vera Victor Victoria Viktor Vikram Vincent
Vladimir Walter Wei Wendy William Xavier Yan Yara Yasmin Ying Yuki Yuri Yusuf Yvonne Zara Zoe
"""


def _names(block: str) -> tuple[str, ...]:
    return tuple(name for part in block.split(";") if (name := " ".join(part.split())))


TECHNOLOGIES: Final = _names(_TECHNOLOGIES)
PATTERNS: Final = _names(_PATTERNS)
CONCERNS: Final = _names(_CONCERNS)
ORGANIZATIONS: Final = _names(_ORGANIZATIONS)
CASED: Final = frozenset(_names(_CASED))
GIVEN_NAMES: Final = frozenset(_GIVEN_NAMES.split())
