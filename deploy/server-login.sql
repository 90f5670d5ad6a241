-- The login that `clawmark serve` connects with. It owns nothing; its password is in the
-- environment variable SERVER_PASSWORD. Run it as the owner, after `clawmark db init`; running it
-- again changes the password.
\getenv server_password SERVER_PASSWORD
SELECT 'CREATE ROLE clawmark_server LOGIN'
WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'clawmark_server') \gexec
ALTER ROLE clawmark_server PASSWORD :'server_password' CONNECTION LIMIT 100;
GRANT clawmark_service TO clawmark_server;
